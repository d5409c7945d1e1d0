"""Administration from the command line: tenants, keys, and the rotation of the pepper."""

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.access import audit_heads, audit_repository, repository, service, tenants
from app.access.principal import SCOPES, TENANT_SCOPES, Principal
from app.access.quotas import QUOTAS
from app.foundation.clock import rfc3339
from app.foundation.database import SYSTEM, Database
from app.foundation.problems import Problem
from app.foundation.settings import Settings

MISMATCH = 3
_SCOPES_HELP = (
    "comma-separated; all (of one tenant), or operator (all, and the catalog and the tenants besides): "
    + ", ".join(sorted(SCOPES))
)


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the commands."""
    tenant = commands.add_parser("create-tenant", help="make a tenant")
    tenant.add_argument("tenant")
    tenant.add_argument("--name", default="")
    tenant.add_argument("--currency", default="USD")
    quota = commands.add_parser("set-quota", help=f"limit a tenant: {', '.join(QUOTAS)}")
    quota.add_argument("tenant")
    quota.add_argument("quota", choices=sorted(QUOTAS))
    quota.add_argument("limit", help="a number, or default")
    commands.add_parser("list-tenants", help="list tenants")
    key = commands.add_parser("create-key", help="make an API key and print it once")
    key.add_argument("tenant")
    key.add_argument("--name", required=True)
    key.add_argument("--scopes", default="all", help=_SCOPES_HELP)
    key.add_argument("--days", type=int, default=None, help="days until it expires")
    key.add_argument("--networks", default="", help="comma-separated networks it may be used from")
    for name, text in (("list-keys", "list a tenant's keys"), ("usage", "count a tenant's actions of 30 days")):
        commands.add_parser(name, help=text).add_argument("tenant")
    for name, text in (
        ("audit-head", "print the signed head of a tenant's audit chain"),
        ("export-audit", "print a tenant's audit entries, one JSON a line"),
    ):
        commands.add_parser(name, help=text).add_argument("tenant")
    check = commands.add_parser("verify-audit", help="hold exported entries against a signed head, without a database")
    check.add_argument("entries", help="JSON lines of export-audit or of GET /v1/audit, from the first entry on")
    check.add_argument("head", help="JSON of audit-head or GET /v1/audit/head")
    check.add_argument("--public-key", default=None, help="hexadecimal, as noted when the head was kept")
    for name in ("revoke-key", "rotate-key"):
        parser = commands.add_parser(name, help="end a key at once" if name == "revoke-key" else "replace a key")
        parser.add_argument("tenant")
        parser.add_argument("key")


def verify_audit(options: argparse.Namespace) -> int:
    """Check an export offline; 3 when it does not lead to the head."""
    try:
        head = json.loads(Path(options.head).read_text(encoding="utf-8"))
        with Path(options.entries).open(encoding="utf-8") as lines:
            entries = (json.loads(line) for line in lines if line.strip())
            verdict = audit_heads.verify_export(entries, head, options.public_key)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"The export cannot be read: {error}\n")
        return 2
    said = "match" if verdict.match else f"no match: {verdict.reason}"
    sys.stdout.write(f"{said} ({verdict.entries} entries)\n")
    return 0 if verdict.match else MISMATCH


def run(options: argparse.Namespace, settings: Settings) -> int:
    """Run one command; 1 when it is refused."""
    if options.command == "verify-audit":
        return verify_audit(options)
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
        lambda c: tenants.create(
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
    found = database.read_now(repository.all_tenants, SYSTEM)
    return [f"{tenant.tenant_id}\t{tenant.name}\t{tenant.default_currency}" for tenant in found]


def _create_key(options: argparse.Namespace, settings: Settings, database: Database) -> list[str]:
    named = {"all": TENANT_SCOPES, "operator": SCOPES}
    scopes = sorted(named.get(options.scopes) or options.scopes.split(","))
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


def _set_quota(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    if options.limit != "default" and not options.limit.isdigit():
        raise Problem("validation-failed", f"{options.limit!r} is neither a number nor default.")
    limit = None if options.limit == "default" else int(options.limit)
    database.transact_now(lambda c: tenants.change(c, options.tenant, {"quotas": {options.quota: limit}}), SYSTEM)
    return [f"{options.tenant}\t{options.quota}\t{options.limit}"]


def _audit_head(options: argparse.Namespace, settings: Settings, database: Database) -> list[str]:
    head = database.read_now(
        lambda c: audit_heads.sign(c, options.tenant, now=_now(), signing_key=settings.signing_key), options.tenant
    )
    return [json.dumps(audit_heads.as_json(head))]


def _export_audit(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    entries = database.read_now(lambda c: list(audit_repository.walk(c, options.tenant)), options.tenant)
    return [json.dumps(entry.as_json(), ensure_ascii=False) for entry in entries]


def _usage(options: argparse.Namespace, _settings: Settings, database: Database) -> list[str]:
    counts = database.read_now(lambda c: service.usage(c, options.tenant, _now()), options.tenant)
    days, _ = database.read_now(lambda c: service.usage_by_day(c, options.tenant, _now()), options.tenant)
    by_day = [f"{number}\t{measure}\t{day}" for day, used in days.items() for measure, number in sorted(used.items())]
    return [f"{number}\t{action}" for action, number in counts.items()] + by_day


_RUNNERS = {
    "create-tenant": _create_tenant,
    "list-tenants": _list_tenants,
    "create-key": _create_key,
    "list-keys": _list_keys,
    "revoke-key": _revoke_key,
    "rotate-key": _rotate_key,
    "set-quota": _set_quota,
    "audit-head": _audit_head,
    "export-audit": _export_audit,
    "usage": _usage,
}
COMMANDS = frozenset(_RUNNERS) | {"verify-audit"}
