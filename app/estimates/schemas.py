"""The body of ``POST /v1/estimates`` and ``POST /v1/quotes`` (API contract A): items, supply, terms."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from app.estimates.fields import CurrencyCode, DecimalText, Fraction, Name, Price, Schema, Share, Text
from app.estimates.job_schemas import MOST_ACCELERATORS, Job, TrainingJob
from app.foundation.dates import DateText
from app.foundation.numbers import LEAST, Count, Number
from app.foundation.time_zones import is_zone

# 730 h is a month; ten years is longer than any job quoted here
LONGEST_DEADLINE_HOURS = 87_600
MOST_ITEMS = 20
MOST_NAMES = 200
MOST_OPTIONS = 100

PurchaseKind = Literal["on_demand", "reserved", "capacity_block", "spot", "marketplace", "owned"]
_SHORT_NAMES: dict[str, dict[str, object]] = {
    "reserved_1y": {"kind": "reserved", "term_months": 12},
    "reserved_3y": {"kind": "reserved", "term_months": 36},
}


class PurchaseModel(Schema):
    """How capacity is bought. ``bill`` says whether a commitment is paid for its term or only for the job's hours."""

    kind: PurchaseKind
    term_months: Annotated[Count, Field(ge=1, le=120)] | None = None
    payment: Literal["none", "partial", "all_upfront"] | None = None
    bill: Literal["term", "hours"] = "term"

    @model_validator(mode="after")
    def _consistent(self) -> "PurchaseModel":
        if self.term_months is not None and self.kind not in ("reserved", "capacity_block"):
            raise PydanticCustomError("term_months", "only reserved capacity has a term", {})
        return self


def _purchase(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _SHORT_NAMES.get(value, {"kind": value})


class Network(Schema):
    """A scale-out network that replaces the catalog's figure for the offer or accelerator."""

    kind: Literal["infiniband", "roce", "ethernet"]
    bytes_per_s_per_accelerator: Annotated[Number, Field(ge=LEAST, le=1e13)]
    oversubscription: Annotated[Number, Field(ge=1, le=64)] = 1.0
    rails: Annotated[Count, Field(ge=1, le=64)] = 1


class Ownership(Schema):
    """Terms of owned hardware; what is left out comes from the catalog and is listed under ``assumptions``."""

    server_price: Price | None = None
    depreciation_months: Annotated[Count, Field(ge=1, le=240)] | None = None
    residual_value: Share | None = None
    utilization: Annotated[DecimalText, Field(gt=0, le=1)] | None = None
    electricity_price: Price | None = None
    pue: Annotated[DecimalText, Field(ge=1, le=5)] | None = None
    colocation_price: Price | None = None
    staff_price: Price | None = None
    storage_price: Price | None = None
    network_share: Annotated[DecimalText, Field(ge=0, lt=1)] | None = None
    cost_of_capital: Share | None = None
    spares: Share | None = None


class Supply(Schema):
    """On what the job may run; everything left out is chosen from the catalog."""

    accelerators: list[Name] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    accelerator_count: Annotated[Count, Field(ge=1, le=MOST_ACCELERATORS)] | None = None
    providers: list[Name] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    regions: list[Name] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    purchase_models: list[Annotated[PurchaseModel, BeforeValidator(_purchase)]] | None = Field(
        default=None, min_length=1, max_length=20
    )
    offers: list[Name] | None = Field(default=None, min_length=1, max_length=MOST_NAMES)
    network: Network | None = None
    storage: Name | None = None
    grid_kg_co2e_per_kwh: Annotated[Number, Field(ge=0, le=5)] | None = None
    ownership: Ownership | None = None


class Constraints(Schema):
    """What an option must keep to."""

    deadline_hours: Annotated[Number, Field(ge=LEAST, le=LONGEST_DEADLINE_HOURS)] | None = None
    budget: Price | None = None
    max_options: Annotated[Count, Field(ge=1, le=MOST_OPTIONS)] = 10
    solve_for: Literal["tokens", "concurrency"] | None = None


class Item(Schema):
    """One job with where it may run and how options are ranked."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "item-1"
    job: Job
    supply: Supply = Supply()
    objective: Literal["cost", "time", "cost_time", "carbon"] = "cost"
    constraints: Constraints = Constraints()

    @model_validator(mode="after")
    def _has_work(self) -> "Item":
        solve_for = self.constraints.solve_for
        if isinstance(self.job, TrainingJob):
            if solve_for == "concurrency":
                raise PydanticCustomError("solve_for", "concurrency is solved for in an inference job", {})
            if self.job.tokens is None and self.job.dataset is None and solve_for != "tokens":
                raise PydanticCustomError("missing_work", "give job.tokens or job.dataset: the amount of work", {})
            if solve_for == "tokens" and (self.job.tokens is not None or self.job.dataset is not None):
                raise PydanticCustomError(
                    "solve_for", "tokens are what is solved for: leave job.tokens and job.dataset out", {}
                )
            if solve_for == "tokens" and self.constraints.deadline_hours is None:
                raise PydanticCustomError("solve_for", "solving for tokens needs constraints.deadline_hours", {})
            return self
        load = self.job.traffic
        stated = any(v is not None for v in (load.requests_per_second, load.concurrency, load.tokens_per_day))
        if solve_for == "tokens":
            raise PydanticCustomError("solve_for", "tokens are solved for in a training job", {})
        if solve_for == "concurrency" and stated:
            raise PydanticCustomError(
                "solve_for",
                "concurrency is what is solved for: leave requests_per_second, concurrency and tokens_per_day out",
                {},
            )
        if not stated and solve_for != "concurrency":
            raise PydanticCustomError(
                "missing_work",
                "give job.traffic one load: requests_per_second, concurrency or tokens_per_day",
                {},
            )
        return self


class Customer(Schema):
    """Who the estimate is for."""

    external_ref: Name | None = None
    name: Text | None = None


def _known_zone(name: str) -> str:
    if not is_zone(name):
        raise PydanticCustomError(
            "unknown_timezone", "is not an IANA time zone; nearest in form: Asia/Shanghai, UTC", {}
        )
    return name


class Terms(Schema):
    """For whom and in which money."""

    currency: CurrencyCode = "USD"
    price_book: Name | None = None
    markup: Annotated[Fraction, Field(ge=0, le=10)] = Field(default="0", validate_default=True)
    discount: Share = Field(default="0", validate_default=True)
    tax_region: Annotated[str, Field(pattern=r"^[A-Z]{2}(-[A-Z0-9]{1,3})?$")] | None = None
    contingency: Share = Field(default="0", validate_default=True)
    rounding_policy: Literal["line_half_up/tax_by_rate", "line_half_up/tax_per_line"] = "line_half_up/tax_by_rate"
    valid_through: DateText | None = None
    timezone: Annotated[Name, AfterValidator(_known_zone)] = "UTC"


class EstimateRequest(Schema):
    """The whole body; the smallest useful one is an item with a model and an amount of work."""

    title: Text | None = None
    customer: Customer | None = None
    items: list[Item] = Field(min_length=1, max_length=MOST_ITEMS)
    terms: Terms = Terms()
    as_of: DateText | None = None
    catalog_revision: Annotated[str, Field(max_length=80)] | Count | None = None

    @model_validator(mode="after")
    def _distinct_items(self) -> "EstimateRequest":
        ids = [item.id for item in self.items]
        for n, item_id in enumerate(ids):
            if item_id in ids[:n]:
                raise PydanticCustomError(
                    "duplicate_id",
                    "item ids are distinct, and {id} is used twice; give each item its own id",
                    {"id": item_id, "path": ("items", n, "id")},
                )
        return self


class SensitivityRequest(EstimateRequest):
    """An estimate request whose recommended options are studied; ``samples`` is a power of two."""

    samples: Literal[256, 512, 1024, 2048, 4096, 8192, 16384] = 4096
