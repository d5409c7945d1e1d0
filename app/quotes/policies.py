"""The approval policy of a tenant: read for every decision, changed by adding a version."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from app.access import audit
from app.foundation.canonical import canonical_sha256
from app.quotes import repository
from app.quotes.acting import Acting
from app.quotes.errors import bad_field
from app.quotes.policy import DEFAULT_POLICY, ApprovalPolicy, policy_from_document


def current_policy(connection: Connection, tenant_id: str) -> ApprovalPolicy:
    """Give the tenant's newest policy, or the default one."""
    stored = repository.latest_policy(connection, tenant_id)
    if stored is None:
        return DEFAULT_POLICY
    version, document = stored
    return policy_from_document(document, version)


def set_policy(connection: Connection, acting: Acting, document: Mapping[str, Any]) -> ApprovalPolicy:
    """Add a version and record it; revisions submitted before keep the verdict of the version they were judged by."""
    before = current_policy(connection, acting.tenant_id)
    version = before.version + 1
    try:
        policy = policy_from_document(document, version)
    except ValueError as error:
        raise bad_field("", "policy", f"This is not an approval policy: {error}.") from error
    now = acting.now(connection)
    repository.insert_policy(
        connection,
        acting.tenant_id,
        version=version,
        document=policy.as_document(),
        created_by=acting.actor,
        created_at=now,
    )
    audit.record(
        connection,
        principal=acting.principal,
        at=now,
        action="approval-policy.replace",
        subject="approval-policy",
        before_sha256=canonical_sha256(before.as_document()),
        after_sha256=canonical_sha256(policy.as_document()),
        details={"version": version},
    )
    return policy
