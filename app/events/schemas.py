"""Bodies of the event and webhook routes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.events.webhook import Delivery, Webhook
from app.foundation.clock import rfc3339
from app.foundation.numbers import Count

Url = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
EventType = Annotated[str, StringConstraints(max_length=80)]
Description = Annotated[str, StringConstraints(max_length=200)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WebhookCreate(Strict):
    """A new webhook; ``*`` stands for every event type."""

    url: Url
    event_types: list[EventType] = Field(default=["*"], min_length=1, max_length=64)
    description: Description = ""


class WebhookChange(Strict):
    """What to change; what is left out stays."""

    url: Url | None = None
    event_types: list[EventType] | None = Field(default=None, min_length=1, max_length=64)
    description: Description | None = None
    status: Literal["enabled", "disabled"] | None = None


class SecretRotate(Strict):
    """How long messages go on carrying the old signature too, in seconds."""

    grace_seconds: Count = Field(default=86_400, ge=0, le=7 * 86_400)


class WebhookView(BaseModel):
    id: str
    url: str
    event_types: list[str]
    description: str
    status: str
    disabled_reason: str | None
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookView":
        return cls(**_members(webhook))


class NewWebhookView(WebhookView):
    """A webhook with its secret, told once: the replay of a retry has null in its place."""

    secret: str | None

    @classmethod
    def of_new(cls, webhook: Webhook, secret: str | None) -> "NewWebhookView":
        return cls(**_members(webhook), secret=secret)


def _members(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "url": webhook.url,
        "event_types": list(webhook.event_types),
        "description": webhook.description,
        "status": webhook.status,
        "disabled_reason": webhook.disabled_reason,
        "created_at": rfc3339(webhook.created_at),
        "updated_at": rfc3339(webhook.updated_at),
    }


class DeliveryView(BaseModel):
    """One event on its way; the beginning of the receiver's answer is shown to administrators only."""

    id: str
    event_id: str
    status: str
    attempts: int
    next_attempt_at: str | None
    response_status: int | None
    response_excerpt: str | None
    failure: str | None
    created_at: str
    finished_at: str | None

    @classmethod
    def of(cls, delivery: Delivery, *, with_excerpt: bool) -> "DeliveryView":
        return cls(
            id=delivery.id,
            event_id=delivery.event_id,
            status=delivery.status,
            attempts=delivery.attempts,
            next_attempt_at=None if delivery.next_attempt_at is None else rfc3339(delivery.next_attempt_at),
            response_status=delivery.response_status,
            response_excerpt=delivery.response_excerpt if with_excerpt else None,
            failure=delivery.failure,
            created_at=rfc3339(delivery.created_at),
            finished_at=None if delivery.finished_at is None else rfc3339(delivery.finished_at),
        )


class WebhookPage(BaseModel):
    items: list[WebhookView]
    next_cursor: str | None


class DeliveryPage(BaseModel):
    items: list[DeliveryView]
    next_cursor: str | None


class EventView(BaseModel):
    """An event in the attributes of CloudEvents 1.0, with its place in the tenant's feed."""

    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    sequence: int
    data: dict[str, Any]


class EventFeed(BaseModel):
    """A stretch of the feed. ``next_cursor`` is always there: ask again with it to hear what happens next."""

    items: list[EventView]
    next_cursor: str
