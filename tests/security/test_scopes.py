"""Every operation needs a scope that it declares, and no other; what is public says why."""

from collections.abc import Iterator
from typing import Any

from fastapi.dependencies.models import Dependant

from app.access.principal import SCOPES
from app.main import create_app
from tests.security.calls import call, every_route, names_for
from tests.security.conftest import guarded_settings
from tests.security.matrix import OPERATIONS
from tests.security.world import World, new_party

ANONYMOUS: dict[str, str] = {}


def _declared(dependant: Dependant) -> Iterator[tuple[str, ...]]:
    for part in dependant.dependencies:
        scopes: Any = getattr(part.call, "accepted_scopes", None)
        if scopes is not None:
            yield tuple(scopes)
        yield from _declared(part)


def test_every_operation_declares_the_scope_of_the_matrix(tmp_path) -> None:
    served = every_route(create_app(guarded_settings(f"sqlite:///{tmp_path / 'none.db'}")))
    for key, dependant in served.items():
        operation = OPERATIONS[key]
        declared = [] if dependant is None else list(_declared(dependant))
        assert bool(operation.public) + bool(operation.scopes) <= 1, key
        assert declared == ([tuple(operation.scopes)] if operation.scopes else []), key


def test_nobody_gets_in_without_a_credential(world: World) -> None:
    for key, operation in OPERATIONS.items():
        names = names_for(world.red.ids, world.red, operation.asks[0])
        answer = call(world.client, key, operation, names, ANONYMOUS)
        if key == ("GET", "/metrics"):
            assert answer.status_code == 404, "off where others can reach the service, unless the operator says public"
        elif operation.public:
            assert answer.status_code == 200, key
        else:
            assert (answer.status_code, answer.json()["slug"]) == (401, "unauthenticated"), key
            assert answer.headers["www-authenticate"].startswith("Bearer"), key


def test_every_scope_but_its_own_is_refused(world: World) -> None:
    keys: dict[frozenset[str], dict[str, str]] = {}
    for key, operation in OPERATIONS.items():
        if not operation.scopes:
            continue
        others = SCOPES - set(operation.scopes)
        who = keys.setdefault(others, keys.get(others) or world.key("red", others))
        answer = call(world.client, key, operation, names_for(world.red.ids, world.red, operation.asks[0]), who)
        assert (answer.status_code, answer.json()["slug"]) == (403, "insufficient-scope"), key
        assert answer.json()["required_scopes"] == list(operation.scopes), key


def test_exactly_its_scope_is_enough(world: World) -> None:
    """On a tenant of its own, because what is called here ends quotes, keys and webhooks."""
    party = new_party(world.client, "green")
    keys = {scope: world.key("green", frozenset({scope})) for scope in SCOPES}
    # A key is rotated by who has all its scopes: here the one with the right to administer and nothing else.
    party.ids["key_id"] = world.client.get("/v1/me", headers=keys["admin"]).json()["key_id"]
    for key, operation in sorted(OPERATIONS.items(), key=lambda row: row[0][0] == "DELETE"):
        for scope in operation.scopes:
            names = names_for(party.ids, party, operation.asks[0])
            answer = call(world.client, key, operation, names, keys[scope])
            assert answer.status_code not in (401, 403), (key, scope, answer.text)
            assert answer.status_code < 500, (key, scope, answer.text)
