"""Which writer makes which format, from which revisions, with which of the caller's options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.proposals.canonical import write_json
from app.proposals.document import Document, Standing
from app.proposals.errors import Misfit, foreign_option, not_representable, unknown_format
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
    """

    write: Callable[[Document, Options], Rendered]
    options: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = (Standing.DRAFT, Standing.OFFER, Standing.VOID)


WRITERS: Mapping[str, Format] = {
    "ubl": Format(write=write_ubl, options=("locale",)),
    "json": Format(write=write_json),
}


def chosen_options(order: ProposalCreate) -> dict[str, Any]:
    """Give the options a caller set, or refuse the format or an option of another one."""
    if order.format not in WRITERS:
        raise unknown_format(order.format, [name for name in FORMATS if name in WRITERS])
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
        hint = f"The format has no field that says {document.standing}: only an {usable} is exported. Issue it first."
        raise not_representable(file_format, [misfit], hint)
    people = {name: Credential(**person) for name, person in chosen.get("credentials", {}).items()}
    return found.write(document, Options(**{**chosen, "credentials": people}))
