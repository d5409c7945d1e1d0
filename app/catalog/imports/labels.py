"""Names as sources write them, folded into catalog ids; an unknown name fails loudly and is never guessed."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.catalog.imports.staged import RowError

# Codes with which sources mark one worldwide price (seed files: "any", "na"; SkyPilot: "global").
WORLDWIDE = frozenset({"any", "na", "global", "worldwide"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The alias tables of the catalog.

    Parameters
    ----------
    accelerators : mapping of str to str or None
        Lower-case label to accelerator id; None = a known label that does not say which part it is.
    providers : mapping of str to str
        Lower-case other name to provider id.
    known_providers : frozenset of str
    """

    accelerators: Mapping[str, str | None]
    providers: Mapping[str, str]
    known_providers: frozenset[str]

    def accelerator(self, label: str) -> tuple[str | None, str | None]:
        """Find the accelerator id of a label and, where it has none, the reason to keep it out of quotes."""
        folded = label.strip().lower()
        if folded not in self.accelerators:
            raise RowError("unknown_accelerator", f"no accelerator is known as {label!r}; add an alias or correct it")
        found = self.accelerators[folded]
        return found, None if found is not None else "form_factor_unstated"

    def provider(self, name: str) -> str:
        """Find a provider id."""
        folded = name.strip().lower()
        provider = self.providers.get(folded, folded)
        if provider not in self.known_providers:
            raise RowError("unknown_provider", f"no provider is known as {name!r}; add it before importing its prices")
        return provider


def region_code(text: str) -> str:
    """Fold the marks for one worldwide price into the pseudo-region ``global``."""
    code = text.strip()
    if not code:
        raise RowError("missing_region", "the region is blank; a worldwide price says global")
    return "global" if code.lower() in WORLDWIDE else code
