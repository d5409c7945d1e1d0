"""Bodies of ``POST /v1/claims`` and ``POST /v1/comparisons`` (API contract B and C)."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from app.estimates.fields import Name, Schema, Text
from app.estimates.job_schemas import MOST_ACCELERATORS, Job
from app.estimates.schemas import Item, Supply, Terms
from app.foundation.dates import DateText
from app.foundation.numbers import LEAST, Count, Number

MOST_CLAIMS = 50
MOST_SUPPLIES = 20
Relation = Literal["ratio", "absolute", "percent_change"]
Figure = Annotated[Number, Field(ge=-1e30, le=1e30)]
LongText = Annotated[str, Field(min_length=1, max_length=2000)]
AcceleratorCount = Annotated[Count, Field(ge=1, le=MOST_ACCELERATORS)]


class Utilizations(Schema):
    """Two utilisations of the same hardware, where the claim is about utilisation and nothing else."""

    baseline: Annotated[Number, Field(ge=LEAST, le=1)]
    candidate: Annotated[Number, Field(ge=LEAST, le=1)]


class ClaimField(Schema):
    """One claimed figure. What is given here stands in for what the body gives for all claims.

    ``text``, ``note`` and ``we_know`` are kept for the reader; only a ``specification`` is matched by its text.
    """

    id: Name | None = None
    metric: Name
    relation: Relation | None = None
    low: Figure | None = None
    high: Figure | None = None
    equals: Figure | None = None
    text: LongText | None = None
    note: LongText | None = None
    we_know: LongText | None = None
    job: Job | None = None
    baseline_job: Job | None = None
    baseline: Supply | None = None
    candidate: Supply | None = None
    accelerator_count: AcceleratorCount | None = None
    precision: Name | None = None
    items: list[Item] | None = Field(default=None, min_length=1, max_length=10)
    utilization: Utilizations | None = None

    @model_validator(mode="after")
    def _possible(self) -> "ClaimField":
        if self.equals is not None and (self.low is not None or self.high is not None):
            raise PydanticCustomError("one_of", "give equals, or low and high, not both", {})
        if self.low is not None and self.high is not None and self.low > self.high:
            raise PydanticCustomError(
                "impossible_range",
                "low ({low}) is above high ({high}): no figure lies in that range; exchange them",
                {"low": self.low, "high": self.high},
            )
        return self


class ClaimsRequest(Schema):
    """Claims about a job on a candidate supply, mostly against a baseline supply."""

    job: Job | None = None
    items: list[Item] | None = Field(default=None, min_length=1, max_length=10)
    baseline: Supply | None = None
    candidate: Supply | None = None
    accelerator_count: AcceleratorCount | None = None
    claims: list[ClaimField] = Field(min_length=1, max_length=MOST_CLAIMS)
    terms: Terms = Terms()
    as_of: DateText | None = None
    catalog_revision: Annotated[str, Field(max_length=80)] | Count | None = None


class ComparedSupply(Supply):
    """A supply with a name to show; ``precision`` replaces the job's on this one."""

    name: Text | None = None
    precision: Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8", "int4", "mxfp4"] | None = None

    def plain(self) -> Supply:
        """The supply alone, with what was stated."""
        stated = {n: getattr(self, n) for n in self.model_fields_set if n not in ("name", "precision")}
        return Supply().model_copy(update=stated)


class ComparisonRequest(Schema):
    """One job on any number of supplies; the first is what the others are compared with."""

    job: Job
    supplies: list[ComparedSupply] = Field(min_length=1, max_length=MOST_SUPPLIES)
    accelerator_count: AcceleratorCount | None = None
    scaling: Literal["none", "coarse", "full"] = "coarse"
    largest_cluster: Annotated[Count, Field(ge=1, le=MOST_ACCELERATORS)] = 16_384
    terms: Terms = Terms()
    as_of: DateText | None = None
    catalog_revision: Annotated[str, Field(max_length=80)] | Count | None = None
