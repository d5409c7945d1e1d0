"""How far a source is believed: a table of citation prefixes, most specific first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What a citation says about the rows below it."""

    method: str
    kind: str
    confidence: str
    licence: str | None


UNKNOWN = Trust(method="manual", kind="list", confidence="low", licence=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustTable:
    """Rules of the form: a citation that contains this text, on such instance types, is to be believed so."""

    rules: tuple[tuple[str, str, Trust], ...]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, str | None]]) -> "TrustTable":
        """Read the rules as shipped."""
        return cls(
            rules=tuple(
                (
                    str(row["citation"]),
                    str(row.get("instance_type") or ""),
                    Trust(
                        method=str(row["method"]),
                        kind=str(row["kind"]),
                        confidence=str(row["confidence"]),
                        licence=row.get("licence"),
                    ),
                )
                for row in rows
            )
        )

    def of(self, citation: str, instance_type: str) -> Trust:
        """Find the first rule that fits; without one a row counts as entered by hand."""
        for text, instance_text, trust in self.rules:
            if text in citation and instance_text in instance_type:
                return trust
        return UNKNOWN
