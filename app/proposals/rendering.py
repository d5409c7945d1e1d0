"""Which writer makes which format, from which revisions, with which of the caller's options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.proposals.canonical import write_json
from app.proposals.cxml import write_cxml
from app.proposals.document import Document, Standing
from app.proposals.errors import Misfit, foreign_option, not_representable, offer_over, unknown_format
from app.proposals.focus import write_focus
from app.proposals.oci import write_oci
from app.proposals.rendered import Credential, Options, Rendered
from app.proposals.schemas import FORMATS, ProposalCreate
from app.proposals.ubl import write_ubl


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format.

    Parameters
    ----------
    options : tuple of str
        What a caller may choose.
    standings : tuple of Standing
        Revisions it is made from. A format without a place to say "draft" is not made from one: its reader would take
        a draft for an offer and order from it. Nobody orders from a void revision.
    is_cart : bool
        Whether procurement systems order from it as it is: not after the offer's last day.
    """

    write: Callable[[Document, Options], Rendered]
    options: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = (Standing.DRAFT, Standing.OFFER, Standing.VOID)
    is_cart: bool = False


WRITERS: Mapping[str, Format] = {
    "ubl": Format(write=write_ubl, options=("locale",)),
    "focus-csv": Format(write=write_focus, options=("locale",)),
    "json": Format(write=write_json),
    "cxml": Format(
        write=write_cxml,
        options=("locale", "buyer_cookie", "credentials"),
        standings=(Standing.DRAFT, Standing.OFFER),
        is_cart=True,
    ),
    "oci": Format(
        write=write_oci,
        options=("locale", "mode", "encoding", "hook_url", "vendor", "material_group"),
        standings=(Standing.OFFER,),
        is_cart=True,
    ),
}


def chosen_options(order: ProposalCreate) -> dict[str, Any]:
    """Give the options a caller set, or refuse the format or an option of another one."""
    if order.format not in WRITERS:
        raise unknown_format(order.format, FORMATS)
    given = order.model_dump(exclude={"format"}, exclude_none=True, by_alias=True)
    allowed = WRITERS[order.format].options
    for name in given:
        if name not in allowed:
            raise foreign_option(name, order.format, allowed)
    return given


def render(document: Document, file_format: str, chosen: Mapping[str, Any]) -> Rendered:
    """Write the file: the same document and options give the same bytes."""
    found = WRITERS[file_format]
    if document.standing not in found.standings:
        usable = " or ".join(found.standings)
        misfit = Misfit(pointer="/status", field="status", limit=usable, value=document.status)
        hint = f"No field of it says {document.standing}, so its reader would order from this. Issue a revision first."
        raise not_representable(file_format, [misfit], hint)
    if found.is_cart and document.is_over:
        raise offer_over(document.quote_id, document.valid_through_on, document.timezone)
    people = {name: Credential(**person) for name, person in chosen.get("credentials", {}).items()}
    return found.write(document, Options(**{**chosen, "credentials": people}))
