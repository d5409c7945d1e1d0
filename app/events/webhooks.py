"""Webhooks: make, change, rotate, test, redeliver, and the outcome of each attempt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson
from sqlalchemy import Connection

from app.access import audit, quotas
from app.access.principal import Principal
from app.events import outbox, repository, signing
from app.events import webhook_repository as rows
from app.events.egress import Outcome
from app.events.event import EVENT_TYPES
from app.events.webhook import Delivery, Webhook, next_attempt_at
from app.foundation.identifiers import new_id
from app.foundation.problems import FieldError, NotFound, Problem

GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be sent, made ready inside the transaction, sent outside it."""

    delivery: Delivery
    url: str
    body: bytes
    secrets: tuple[str, ...]


def check_event_types(event_types: Sequence[str]) -> None:
    unknown = sorted(set(event_types) - EVENT_TYPES - {"*"})
    if unknown:
        message = f"not among the event types: {', '.join(unknown)}; known are *, {', '.join(sorted(EVENT_TYPES))}"
        field = FieldError(code="event_type_unknown", message=message, pointer="/event_types")
        raise Problem("validation-failed", f"/event_types: {message}.", errors=[field], pointer="/event_types")


def create(
    connection: Connection,
    *,
    principal: Principal,
    url: str,
    event_types: Sequence[str],
    description: str,
    now: datetime,
    seal: signing.Seal,
) -> tuple[Webhook, str]:
    """Keep a webhook whose URL was checked, and return it with its secret, told this once."""
    check_event_types(event_types)
    quotas.hold(connection, principal.tenant_id, "webhooks")
    quotas.check_room(
        connection, principal.tenant_id, "webhooks", rows.count_webhooks(connection, principal.tenant_id), now
    )
    secret = signing.new_secret()
    webhook = Webhook(
        tenant_id=principal.tenant_id,
        id=new_id("whk"),
        url=url,
        event_types=tuple(sorted(set(event_types))),
        description=description,
        sealed_secret=seal.close(secret),
        sealed_previous_secret=None,
        previous_secret_expires_at=None,
        status="enabled",
        disabled_reason=None,
        version=1,
        created_at=now,
        updated_at=now,
    )
    rows.insert_webhook(connection, webhook)
    audit.record(connection, principal=principal, at=now, action="webhook.create", subject=webhook.id)
    return webhook, secret


def find(connection: Connection, tenant_id: str, webhook_id: str) -> Webhook:
    """Return a webhook; a deleted one is gone."""
    webhook = rows.find_webhook(connection, tenant_id, webhook_id)
    if webhook is None:
        raise NotFound("webhook")
    if webhook.status == "deleted":
        raise Problem("gone", "The webhook was deleted. Make a new one.")
    return webhook


def change(
    connection: Connection, *, principal: Principal, webhook: Webhook, action: str, now: datetime, **values: Any
) -> Webhook:
    """Change a webhook that the caller has seen; 412 when somebody was faster."""
    if not rows.update_webhook(connection, webhook, now=now, **values):
        raise Problem("precondition-failed", "The webhook changed meanwhile. Read it again and repeat your change.")
    audit.record(connection, principal=principal, at=now, action=f"webhook.{action}", subject=webhook.id)
    return find(connection, webhook.tenant_id, webhook.id)


def delete(connection: Connection, *, principal: Principal, webhook_id: str, now: datetime) -> None:
    webhook = find(connection, principal.tenant_id, webhook_id)
    rows.update_webhook(connection, webhook, now=now, status="deleted")
    rows.cancel_deliveries(connection, principal.tenant_id, webhook_id, now)
    audit.record(connection, principal=principal, at=now, action="webhook.delete", subject=webhook_id)


def rotate_secret(
    connection: Connection,
    *,
    principal: Principal,
    webhook_id: str,
    grace: timedelta,
    now: datetime,
    seal: signing.Seal,
) -> tuple[Webhook, str]:
    """Make a new secret; until the grace period ends messages carry both signatures."""
    webhook, secret = find(connection, principal.tenant_id, webhook_id), signing.new_secret()
    changed = change(
        connection,
        principal=principal,
        webhook=webhook,
        action="rotate_secret",
        now=now,
        sealed_secret=seal.close(secret),
        sealed_previous_secret=webhook.sealed_secret,
        previous_secret_expires_at=now + grace,
    )
    return changed, secret


def send_test(connection: Connection, *, principal: Principal, webhook_id: str, now: datetime) -> Delivery:
    """Queue a test event for this webhook alone."""
    webhook = find(connection, principal.tenant_id, webhook_id)
    event = outbox.announce(
        connection,
        tenant_id=principal.tenant_id,
        event_type="webhook.test",
        subject=webhook.id,
        at=now,
        data={"webhook_id": webhook.id},
    )
    return _queue(connection, webhook, event.id, now)


def redeliver(
    connection: Connection, *, principal: Principal, webhook_id: str, delivery_id: str, now: datetime
) -> Delivery:
    """Queue the event of an earlier delivery again."""
    webhook = find(connection, principal.tenant_id, webhook_id)
    earlier = rows.find_delivery(connection, principal.tenant_id, webhook_id, delivery_id)
    if earlier is None:
        raise NotFound("delivery")
    return _queue(connection, webhook, earlier.event_id, now)


def _queue(connection: Connection, webhook: Webhook, event_id: str, now: datetime) -> Delivery:
    if webhook.status != "enabled":
        raise Problem("conflict", "The webhook is disabled. Enable it first (PATCH status).")
    delivery_id = repository.insert_delivery(connection, webhook.tenant_id, webhook.id, event_id, now)
    queued = rows.find_delivery(connection, webhook.tenant_id, webhook.id, delivery_id)
    assert queued is not None
    return queued


def claim_messages(connection: Connection, *, now: datetime, limit: int, seal: signing.Seal) -> list[Message]:
    """Take due deliveries and make their messages; run as the system."""
    messages = []
    for delivery in rows.claim_due(connection, now, limit):
        webhook = rows.find_webhook(connection, delivery.tenant_id, delivery.webhook_id)
        event = repository.find_event(connection, delivery.tenant_id, delivery.event_id)
        if webhook is None or event is None or webhook.status != "enabled":
            rows.settle_delivery(connection, delivery, status="cancelled", finished_at=now, next_attempt_at=None)
            continue
        sealed = [webhook.sealed_secret]
        ends_at = webhook.previous_secret_expires_at
        if webhook.sealed_previous_secret is not None and ends_at is not None and now < ends_at:
            sealed.append(webhook.sealed_previous_secret)
        messages.append(
            Message(
                delivery=replace(delivery, attempts=delivery.attempts + 1),
                url=webhook.url,
                body=orjson.dumps(event.as_cloud_event()),
                secrets=tuple(seal.open(text) for text in sealed),
            )
        )
    return messages


def settle(connection: Connection, message: Message, outcome: Outcome, *, now: datetime) -> None:
    """Note what an attempt came to: done, again later, given up, or the webhook disabled on 410."""
    delivery = message.delivery
    seen = {
        "response_status": outcome.status,
        "response_excerpt": outcome.excerpt,
        "failure": outcome.failure,
    }
    if outcome.succeeded:
        rows.settle_delivery(connection, delivery, **seen, status="succeeded", finished_at=now, next_attempt_at=None)
        return
    again_at = next_attempt_at(delivery.attempts, now, status=outcome.status, retry_after_s=outcome.retry_after_s)
    if outcome.status == GONE or again_at is None:
        rows.settle_delivery(connection, delivery, **seen, status="failed", finished_at=now, next_attempt_at=None)
    else:
        rows.settle_delivery(connection, delivery, **seen, next_attempt_at=again_at)
    if outcome.status == GONE:
        _disable(connection, delivery, now)


def _disable(connection: Connection, delivery: Delivery, now: datetime) -> None:
    webhook = rows.find_webhook(connection, delivery.tenant_id, delivery.webhook_id)
    if webhook is None or webhook.status != "enabled":
        return
    rows.update_webhook(
        connection, webhook, now=now, status="disabled", disabled_reason="the receiver answered 410 Gone"
    )
    rows.cancel_deliveries(connection, delivery.tenant_id, delivery.webhook_id, now)
    outbox.announce(
        connection,
        tenant_id=delivery.tenant_id,
        event_type="webhook.disabled",
        subject=webhook.id,
        at=now,
        data={"webhook_id": webhook.id, "reason": "gone"},
    )
