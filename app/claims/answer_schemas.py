"""The shape of judged claims and compared supplies, for the API document."""

from typing import Any, Literal

from app.estimates.answer_schemas import Interval, Label
from app.foundation.answers import Shown


class ClaimAnswer(Shown):
    """The verdict on one claim."""

    metric: str
    relation: str
    verdict: Literal["supported", "optimistic", "pessimistic", "contradicted", "not_decidable"]
    predicted: Interval | None
    unit: str | None
    basis: str | None
    reason: Label
    condition: dict[str, Any] | None
    evidence: list[dict[str, Any]]


class ClaimsAnswer(Shown):
    """The answer of ``POST /v1/claims``, in the order asked."""

    claims: list[ClaimAnswer]
    pins: dict[str, Any]


class SupplyAnswer(Shown):
    """One supply: its time, money and energy, or why it cannot run the job."""

    name: str
    feasible: bool


class ComparisonsAnswer(Shown):
    """The answer of ``POST /v1/comparisons``, in the order asked."""

    supplies: list[SupplyAnswer]
    compared_with: str
    currency: str
    pins: dict[str, Any]
