"""Administration from the command line: tenants, keys, and the rotation of the pepper."""

import argparse
import sys
from datetime import UTC, datetime, timedelta

from app.access import service
from app.access.principal import SCOPES, Principal
from app.foundation.clock import rfc3339
from app.foundation.database import SYSTEM, Database
from app.foundation.problems import Problem
from app.foundation.settings import Settings


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the commands."""
    tenant = commands.add_parser("create-tenant", help="make a tenant")
    tenant.add_argument("tenant")
    tenant.add_argument("--name", default="")
    tenant.add_argument("--currency", default="USD")
    commands.add_parser("list-tenants", help="list tenants")
    key = commands.add_parser("create-key", help="make an API key and print it once")
    key.add_argument("tenant")
    key.add_argument("--name", required=True)
    key.add_argument("--scopes", default="all", help=f"comma-separated, or all: {', '.join(sorted(SCOPES))}")
    key.add_argument("--days", type=int, default=None, help="days until it expires")
    key.add_argument("--networks", default="", help="comma-separated networks it may be used from")
    for name, text in (("list-keys", "list a tenant's keys"), ("usage", "count a tenant's actions of 30 days")):
        commands.add_parser(name, help=text).add_argument("tenant")
    for name in ("revoke-key", "rotate-key"):
        parser = commands.add_parser(name, help="end a key at once" if name == "revoke-key" else "replace a key")
        parser.add_argument("tenant")
        parser.add_argument("key")


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Run one command; 1 when it is refused."""
    database = Database(settings.database_url)
    try:
        for line in _RUNNERS[options.command](options, settings, database):
            sys.stdout.write(line + "\n")
    except Problem as problem:
        sys.stderr.write(f"{problem.kind.title_en}: {problem.detail}\n")
        return 1
    finally:
        database.close()
    return 0


def _operator(tenant_id: str) -> Principal:
    return Principal(tenant_id=tenant_id, actor="operator", scopes=SCOPES, is_machine=False)


def _now() -> datetime:
    return datetime.now(UTC)


def _create_tenant(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    made = database.transact_now(
        lambda c: service.create_tenant(
            c,
            tenant_id=options.tenant,
            name=options.name or options.tenant,
            default_currency=options.currency,
            now=_now(),
        ),
        SYSTEM,
    )
    return [made.tenant_id]


def _list_tenants(_options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    found = database.read_now(service.all_tenants, SYSTEM)
    return [f"{tenant.tenant_id}\t{tenant.name}\t{tenant.default_currency}" for tenant in found]


def _create_key(options: argparse.Namespace, settings: Settings, database: Database) -> list[str]:
    scopes = sorted(SCOPES) if options.scopes == "all" else options.scopes.split(",")
    expires_at = None if options.days is None else _now() + timedelta(days=options.days)
    networks = [network for network in options.networks.split(",") if network]
    _existing_tenant(options, database)
    key, text = database.transact_now(
        lambda c: service.create_key(
            c,
            principal=_operator(options.tenant),
            name=options.name,
            scopes=scopes,
            now=_now(),
            peppers=settings.pepper_list,
            expires_at=expires_at,
            allowed_networks=networks,
        ),
        options.tenant,
    )
    return [f"{key.id}\t{text}"]


def _existing_tenant(options: argparse.Namespace, database: Database) -> None:
    if database.read_now(lambda c: service.find_tenant(c, options.tenant), options.tenant) is None:
        raise Problem("not-found", f"There is no tenant {options.tenant}. Make it with: create-tenant {options.tenant}")


def _list_keys(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    principal = _operator(options.tenant)
    found = database.read_now(
        lambda c: service.list_keys(c, principal=principal, after=None, limit=10_000), options.tenant
    )
    now = _now()
    return [
        "\t".join(
            (
                key.id,
                f"gq_{key.prefix}",
                key.name,
                "active" if key.is_active(now) else "ended",
                rfc3339(key.last_used_at) if key.last_used_at else "never used",
                f"pepper {key.pepper_id}",
                ",".join(key.scopes),
            )
        )
        for key in found
    ]


def _revoke_key(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    principal = _operator(options.tenant)
    database.transact_now(
        lambda c: service.revoke_key(c, principal=principal, key_id=options.key, now=_now()), options.tenant
    )
    return [f"{options.key} revoked"]


def _rotate_key(options: argparse.Namespace, settings: Settings, database: Database) -> list[str]:
    key, text = database.transact_now(
        lambda c: service.rotate_key(
            c,
            principal=_operator(options.tenant),
            key_id=options.key,
            grace=timedelta(days=1),
            now=_now(),
            peppers=settings.pepper_list,
        ),
        options.tenant,
    )
    return [f"{key.id}\t{text}"]


def _usage(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    counts = database.read_now(lambda c: service.usage(c, options.tenant, _now()), options.tenant)
    return [f"{number}\t{action}" for action, number in counts.items()]


_RUNNERS = {
    "create-tenant": _create_tenant,
    "list-tenants": _list_tenants,
    "create-key": _create_key,
    "list-keys": _list_keys,
    "revoke-key": _revoke_key,
    "rotate-key": _rotate_key,
    "usage": _usage,
}
COMMANDS = frozenset(_RUNNERS)
