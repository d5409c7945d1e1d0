"""The shape of an answered estimate (API contract B), for the API document."""

from typing import Any, Literal

from pydantic import Field

from app.foundation.answers import Shown
from app.pricing.outcome import PriceOutcome


class MoneyAnswer(Shown):
    """An amount: a decimal in a string, at the scale of what it is."""

    amount: str = Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", examples=["1719079.68"])
    currency: str = Field(pattern="^[A-Z]{3}$", examples=["CNY"])


class Interval(Shown):
    """A figure with its uncertainty."""

    p10: float
    p50: float
    p90: float


class MoneyInterval(Shown):
    """An amount at the 10th, 50th and 90th percentile of the hours."""

    p10: MoneyAnswer | None
    p50: MoneyAnswer | None
    p90: MoneyAnswer | None


class Label(Shown):
    """A text in both languages."""

    en: str
    zh_cn: str = Field(alias="zh-CN")


class OfferAnswer(Shown):
    """What is bought; ``owned`` hardware has no offer id."""

    id: str | None = None
    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    purchase_model: str | None = None
    term_months: int | None = None


class ConfigurationAnswer(Shown):
    """On what it runs, and how the model is spread over it."""

    accelerator: str
    accelerators: int
    nodes: int
    plan: dict[str, Any]


class TrainingPerformance(Shown):
    """How a training run goes."""

    tokens_per_second: Interval
    tokens_per_second_per_accelerator: Interval
    model_flops_utilization: float
    step_seconds: Interval
    duration_hours: Interval
    goodput: float
    time_breakdown: dict[str, float]
    memory_breakdown_bytes: dict[str, float]
    bottleneck: str
    plan_origin: str
    interval_basis: str
    tokens: float
    iterations_per_week: float


class Latency(Shown):
    """A latency over the requests [ms]; null where requests pile up without end."""

    mean: Interval | None
    p50: float | None
    p95: float | None
    p99: float | None


class InferencePerformance(Shown):
    """How a served model answers."""

    output_tokens_per_second: Interval
    output_tokens_per_second_per_accelerator: Interval
    requests_per_second: float
    ttft_ms: Latency
    tpot_ms: Latency
    e2e_ms: Latency
    replicas: int
    accelerators_per_replica: int
    utilization: float
    saturated: bool
    time_breakdown: dict[str, float]
    memory_breakdown_bytes: dict[str, float]
    bottleneck: str
    plan_origin: str
    interval_basis: str


class CostLine(Shown):
    """One line of the bill. Prices behind a mark-up are shown with ``costs:read`` only."""

    id: str
    kind: str
    charge: Literal["usage", "recurring", "one_off"]
    description: Label
    quantity: str
    unit: str
    net_unit_price: MoneyAnswer
    net: MoneyAnswer
    status: Literal["priced"]
    list_unit_price: MoneyAnswer | None = None
    waterfall: list[dict[str, Any]] | None = None
    native_net: MoneyAnswer | None = None
    price_evidence: dict[str, Any] | None = None


class TotalsAnswer(Shown):
    """Sums of one option or of the selected ones; gross is null where a tax is not determined."""

    one_off: MoneyAnswer
    recurring_monthly: MoneyAnswer
    usage: MoneyAnswer
    net: MoneyAnswer
    gross: MoneyAnswer | None
    tax: list[dict[str, Any]]
    rounding_policy: str


class CostAnswer(Shown):
    """What an option costs; no totals where a line has no price."""

    status: str = Field(description="priced, incomplete, or the outcome that stands in the place of a price.")
    lines: list[CostLine]
    unpriced_lines: list[dict[str, Any]]
    totals: TotalsAnswer | None
    net: MoneyInterval | None


class Advice(Shown):
    """A warning or a proposal, with its numbers."""

    code: str
    severity: str
    message: str
    numbers: dict[str, Any] = Field(default_factory=dict)


class AssumptionAnswer(Shown):
    """What was taken for granted, whence, and the share of the total it moves."""

    id: str
    value: Any
    unit: str | None
    source: str
    share_of_total: str | None = None


class CompletenessAnswer(Shown):
    """Whether every line has a price, and which prices are old."""

    complete: bool
    unpriced_lines: list[dict[str, Any]]
    stale_lines: list[Any]


class OptionAnswer(Shown):
    """One way to do the job."""

    id: str
    label: Label
    recommended: bool
    offer: OfferAnswer | None
    configuration: ConfigurationAnswer
    performance: TrainingPerformance | InferencePerformance
    cost: CostAnswer
    unit_costs: dict[str, MoneyAnswer | None]
    energy: dict[str, Any] | None
    advice: list[Advice]
    evidence: list[dict[str, Any]]
    assumptions: list[AssumptionAnswer]
    completeness: CompletenessAnswer


class UnpricedOffer(Shown):
    """An offer that could run the job but has no price."""

    offer_id: str | None
    outcome: PriceOutcome
    reason: str


class ItemAnswer(Shown):
    """One job with its ranked options, the recommended one first."""

    id: str
    kind: Literal["training", "inference"]
    objective: str
    options: list[OptionAnswer]
    selected_option_id: str | None
    refused: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    unpriced_offers: list[UnpricedOffer]


class EstimateAnswer(Shown):
    """The answer of ``POST /v1/estimates``."""

    spec: dict[str, Any] = Field(description="The request with every default written out.")
    items: list[ItemAnswer]
    totals: TotalsAnswer | None = Field(description="Of the recommended options; null where one has no price.")
    completeness: CompletenessAnswer
    lifetime: dict[str, Any] | None
    currency: str
    as_of: str
    fx: list[dict[str, Any]]
    pins: dict[str, Any]


class StudiedItem(Shown):
    """What moves the total of one recommended option."""

    id: str
    option_id: str | None
    label: Label | None
    sensitivity: dict[str, Any] | None


class SensitivityAnswer(Shown):
    """The answer of ``POST /v1/estimates/sensitivity``."""

    items: list[StudiedItem]
    currency: str
    pins: dict[str, Any]
