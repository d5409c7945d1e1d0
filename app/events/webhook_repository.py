"""Statements on webhooks and their deliveries."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, or_, select, update

from app.events.tables import deliveries, webhooks
from app.events.webhook import Delivery, Webhook

LEASE = timedelta(seconds=60)
_DELIVERY = [column for column in deliveries.c if column.name != "lease_until"]


def _webhook(row: Row[Any]) -> Webhook:
    return Webhook(**{**row._mapping, "event_types": tuple(row.event_types)})


def insert_webhook(connection: Connection, webhook: Webhook) -> None:
    values = {name: getattr(webhook, name) for name in Webhook.__slots__}
    connection.execute(insert(webhooks).values(**{**values, "event_types": list(webhook.event_types)}))


def find_webhook(connection: Connection, tenant_id: str, webhook_id: str) -> Webhook | None:
    row = connection.execute(
        select(webhooks).where(webhooks.c.tenant_id == tenant_id, webhooks.c.id == webhook_id)
    ).one_or_none()
    return None if row is None else _webhook(row)


def list_webhooks(connection: Connection, tenant_id: str, *, after_id: str, limit: int) -> list[Webhook]:
    statement = select(webhooks).where(
        webhooks.c.tenant_id == tenant_id, webhooks.c.status != "deleted", webhooks.c.id > after_id
    )
    return [_webhook(row) for row in connection.execute(statement.order_by(webhooks.c.id).limit(limit))]


def count_webhooks(connection: Connection, tenant_id: str) -> int:
    statement = select(func.count()).where(webhooks.c.tenant_id == tenant_id, webhooks.c.status != "deleted")
    return connection.execute(statement).scalar_one()


def update_webhook(connection: Connection, webhook: Webhook, *, now: datetime, **values: Any) -> bool:
    """Change it unless somebody else did meanwhile."""
    statement = (
        update(webhooks)
        .where(
            webhooks.c.tenant_id == webhook.tenant_id,
            webhooks.c.id == webhook.id,
            webhooks.c.version == webhook.version,
        )
        .values(**values, version=webhook.version + 1, updated_at=now)
    )
    return connection.execute(statement).rowcount == 1


def cancel_deliveries(connection: Connection, tenant_id: str, webhook_id: str, now: datetime) -> None:
    connection.execute(
        update(deliveries)
        .where(
            deliveries.c.tenant_id == tenant_id,
            deliveries.c.webhook_id == webhook_id,
            deliveries.c.status == "pending",
        )
        .values(status="cancelled", finished_at=now, next_attempt_at=None)
    )


def find_delivery(connection: Connection, tenant_id: str, webhook_id: str, delivery_id: str) -> Delivery | None:
    row = connection.execute(
        select(*_DELIVERY).where(
            deliveries.c.tenant_id == tenant_id,
            deliveries.c.webhook_id == webhook_id,
            deliveries.c.id == delivery_id,
        )
    ).one_or_none()
    return None if row is None else Delivery(**row._mapping)


def list_deliveries(
    connection: Connection, tenant_id: str, webhook_id: str, *, before_id: str | None, limit: int
) -> list[Delivery]:
    statement = select(*_DELIVERY).where(deliveries.c.tenant_id == tenant_id, deliveries.c.webhook_id == webhook_id)
    if before_id is not None:
        statement = statement.where(deliveries.c.id < before_id)
    return [
        Delivery(**row._mapping) for row in connection.execute(statement.order_by(deliveries.c.id.desc()).limit(limit))
    ]


def _is_due(now: datetime) -> Any:
    return and_(
        deliveries.c.status == "pending",
        deliveries.c.next_attempt_at <= now,
        or_(deliveries.c.lease_until.is_(None), deliveries.c.lease_until <= now),
    )


def any_due(connection: Connection, now: datetime) -> bool:
    return connection.execute(select(deliveries.c.id).where(_is_due(now)).limit(1)).first() is not None


def claim_due(connection: Connection, now: datetime, limit: int) -> list[Delivery]:
    """Take due deliveries under a lease; run as the system, by any number of workers at once."""
    statement = select(*_DELIVERY).where(_is_due(now)).order_by(deliveries.c.next_attempt_at).limit(limit)
    due = [Delivery(**row._mapping) for row in connection.execute(statement.with_for_update(skip_locked=True))]
    for delivery in due:
        connection.execute(
            update(deliveries)
            .where(deliveries.c.tenant_id == delivery.tenant_id, deliveries.c.id == delivery.id)
            .values(lease_until=now + LEASE, attempts=delivery.attempts + 1)
        )
    return due


def settle_delivery(connection: Connection, delivery: Delivery, **values: Any) -> None:
    connection.execute(
        update(deliveries)
        .where(
            deliveries.c.tenant_id == delivery.tenant_id,
            deliveries.c.id == delivery.id,
            deliveries.c.status == "pending",
        )
        .values(**values, lease_until=None)
    )
