"""JSON Schemas that are published beside the API document: the request, the content of a stored revision, the proposal.

``python -m app.proposals.published`` writes docs/schemas. What a revision stores is described here and not validated on
the way in: it is made by this service, and its hash tells whether it still is what was made.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.quotes.schemas import QuoteCreate

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schemas"

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$")]
DecimalText = Annotated[str, Field(pattern=r"^-?(0|[1-9][0-9]*)(\.[0-9]{1,12})?$")]
Charge = Literal["one_off", "recurring", "usage"]
PurchaseModel = Literal["on_demand", "reserved", "capacity_block", "spot", "marketplace", "owned"]
Free = dict[str, JsonValue]


class Told(BaseModel):
    """Base of everything described: what is stated is there, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Amount(Told):
    """Money: a decimal string and its currency."""

    amount: DecimalText
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]


class Texts(Told):
    """A text in both languages."""

    en: str
    zh_cn: str = Field(alias="zh-CN")


class Validity(Told):
    """Local days, the last one included, and the first instant after them."""

    from_: Day = Field(alias="from")
    through: Day
    timezone: str
    expires_at: Instant


class Customer(Told):
    external_ref: str | None
    name: str | None


class TaxRow(Told):
    """One tax; an amount of null is not determined, which is not zero."""

    category: str
    jurisdiction: str | None
    rate: DecimalText | None
    inclusive: bool | None
    base: Amount
    amount: Amount | None
    status: Literal["estimated", "not_determined"]
    source: str | None


class RevisionLine(BaseModel):
    """A priced line; recurring lines state the net of one month."""

    id: Annotated[str, Field(max_length=10)]
    kind: str
    charge: Charge
    description: Texts
    quantity: DecimalText
    unit: str
    hours_basis: Literal["730", "calendar", "contract_hours"] | None
    net_unit_price: Amount
    discount: Amount | None
    net: Amount
    tax_category: str
    status: Literal["priced"]


class RevisionTotals(BaseModel):
    """Sums of the selected options; gross is null where a tax is not determined."""

    one_off: Amount
    recurring_monthly: Amount
    usage: Amount
    net: Amount
    gross: Amount | None
    tax: list[TaxRow]
    tco_horizon_months: list[DecimalText]
    rounding_policy: str
    net_p10: Amount
    net_p90: Amount


class RevisionCost(BaseModel):
    lines: list[RevisionLine]


class RevisionOption(BaseModel):
    """One way to do the job; more members are described in the API document."""

    id: str
    label: Texts
    offer: Free
    configuration: Free
    performance: Free
    cost: RevisionCost
    completeness: Free


class RevisionItem(BaseModel):
    id: str
    kind: Literal["training", "inference"]
    options: list[RevisionOption]
    selected_option_id: str | None


class Parties(Told):
    seller: str
    customer: Customer | None


class RevisionContent(BaseModel):
    """What a revision stores and hashes, as RFC 8785 canonical JSON."""

    spec: Free
    items: list[RevisionItem]
    totals: RevisionTotals | None
    fx: list[Free]
    lifetime: Free | None
    pins: dict[str, str | None]
    validity: Validity
    parties: Parties
    completeness: Free


class ProposalLine(Told):
    """A line as it is sold: ``amount`` is its part of the net total over the months quoted."""

    id: Annotated[str, Field(max_length=10)]
    kind: str
    charge: Charge
    description: Texts
    quantity: DecimalText
    unit: str
    hours_basis: str | None
    list_unit_price: Amount | None
    unit_price: Amount
    discount: Amount | None
    net: Amount
    months: DecimalText | None
    amount: Amount
    included_tax: Amount
    tax_category: str


class ProposalOffer(Told):
    id: str | None
    provider: str | None
    instance_type: str | None
    region: str | None
    purchase_model: PurchaseModel
    term_months: int | None


class ProposalItem(Told):
    id: str
    kind: Literal["training", "inference"]
    option_id: str
    label: Texts
    offer: ProposalOffer
    months: DecimalText | None
    configuration: Free
    performance: Free
    lines: list[ProposalLine]
    taxes: list[TaxRow]


class ProposalTotals(Told):
    one_off: Amount
    recurring_monthly: Amount
    usage: Amount
    net: Amount
    tax: Amount | None
    gross: Amount | None
    tax_status: Literal["estimated", "not_determined"]
    rounding_policy: str


class ProposalDocument(Told):
    """The canonical JSON of a proposal."""

    schema_version: Literal["1"]
    number: Annotated[str, Field(max_length=35)]
    quote_number: str | None
    quote_id: str
    revision_id: str
    revision: int
    revision_content_sha256: Sha256
    status: str
    standing: Literal["draft", "offer", "void"]
    dated: Instant
    validity: Validity
    seller: str
    customer: Customer
    title: str | None
    currency: str
    items: list[ProposalItem]
    totals: ProposalTotals
    pins: dict[str, str | None]
    remarks: list[str]


PUBLISHED: dict[str, type[BaseModel]] = {
    "quote-request": QuoteCreate,
    "revision": RevisionContent,
    "proposal": ProposalDocument,
}


def schema_text(name: str) -> str:
    """Write one schema as it is published."""
    schema: dict[str, Any] = {"$schema": DIALECT, **PUBLISHED[name].model_json_schema(by_alias=True)}
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in PUBLISHED:
        (FOLDER / f"{each}.json").write_text(schema_text(each), encoding="utf-8")
