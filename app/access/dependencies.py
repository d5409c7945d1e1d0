"""What a route declares: who is asking, the scopes it needs, the key under which it acts once."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Request

from app.access.authentication import Authenticator
from app.access.principal import Principal
from app.access.quotas import exceeded
from app.foundation.idempotency import Idempotency, open_idempotency
from app.foundation.problems import Problem


async def current_principal(request: Request) -> Principal:
    """Authenticate the caller."""
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.authenticate(request)


CurrentPrincipal = Annotated[Principal, Depends(current_principal)]


def require_scopes(*scopes: str) -> Callable[..., Awaitable[Principal]]:
    """Return a dependency that lets callers with all these scopes pass and gives the principal.

    Use it as ``principal: Annotated[Principal, Depends(require_scopes("quotes:write"))]``.
    """

    async def check(principal: CurrentPrincipal) -> Principal:
        missing = [scope for scope in scopes if not principal.has(scope)]
        if missing:
            raise Problem(
                "insufficient-scope",
                f"This operation needs the scope {', '.join(missing)}. Ask your administrator for a key that has it.",
                required_scopes=list(scopes),
            )
        return principal

    check.accepted_scopes = scopes  # type: ignore[attr-defined]
    return check


def require_any(*scopes: str) -> Callable[..., Awaitable[Principal]]:
    """Return a dependency that lets callers with one of these scopes pass and gives the principal."""

    async def check(principal: CurrentPrincipal) -> Principal:
        if not any(principal.has(scope) for scope in scopes):
            raise Problem(
                "insufficient-scope",
                f"This operation needs the scope {' or '.join(scopes)}. Ask your administrator for a key that has it.",
                required_scopes=list(scopes),
            )
        return principal

    check.accepted_scopes = scopes  # type: ignore[attr-defined]
    return check


def check_items(principal: Principal, number: int, request: Request) -> None:
    """Refuse a request with more items than the tenant may send at a time."""
    limit = principal.items_per_request
    if limit is not None and number > limit:
        raise exceeded("items_per_request", limit, request.app.state.clock.now())


async def idempotent(
    request: Request,
    principal: CurrentPrincipal,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="A fresh quoted string for each new request, the same one for its retries. Required of API "
            "keys and tokens, optional on the loopback default.",
            examples=['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
        ),
    ] = None,
) -> Idempotency:
    """Open the request's Idempotency-Key (required of machines, optional on loopback).

    Declare it after ``require_scopes``: ``idempotency: Annotated[Idempotency, Depends(idempotent)]``, then answer with
    ``return await idempotency.transact(work)`` where ``work(connection)`` gives a ``foundation.idempotency.Answer``.
    """
    del idempotency_key
    return await open_idempotency(
        request, tenant_id=principal.tenant_id, principal=principal.actor, required=principal.is_machine
    )
