"""An event as it is kept and shown, and the types there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.foundation.clock import rfc3339

EVENT_TYPES = frozenset(
    {
        *(
            f"quote.{what}"
            for what in (
                "created",
                "submitted",
                "approved",
                "rejected",
                "issued",
                "accepted",
                "declined",
                "withdrawn",
                "cancelled",
                "expired",
                "superseded",
                "updated",
            )
        ),
        "revision.created",
        "revision.calculated",
        "revision.calculation_failed",
        "job.completed",
        "proposal.ready",
        "catalog.published",
        "price.drift_detected",
        "webhook.disabled",
        "webhook.test",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, thin on purpose: ids and hashes; the reader fetches the rest with its own rights."""

    tenant_id: str
    id: str
    type: str
    subject: str
    occurred_at: datetime
    data: Mapping[str, Any]
    sequence: int | None = None

    def as_cloud_event(self) -> dict[str, Any]:
        """Return the CloudEvents 1.0 attributes with the data."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": "/v1/events",
            "type": self.type,
            "subject": self.subject,
            "time": rfc3339(self.occurred_at),
            "datacontenttype": "application/json",
            "data": dict(self.data),
        }
