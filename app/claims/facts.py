"""Claims that need no engine: specifications in words, and plain arithmetic on utilisation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog.snapshot import MarketingCheck, Snapshot
from app.claims.prediction import exactly
from app.claims.readings import Reading
from app.claims.schemas import Utilizations
from app.claims.verdict import Verdict

# Share of a checked statement's words that a claim must contain to be taken for it.
SAME_STATEMENT = 0.6
_WORD = re.compile(r"[a-z0-9][a-z0-9.\-]*")
_PLAIN = frozenset(
    ["a", "an", "the", "is", "are", "was", "has", "have", "had", "and", "or", "of", "on", "in", "to", "with", "for"]
) | frozenset(["about", "can", "only", "than", "that", "it", "its", "part", "per", "card", "one", "single", "improved"])
# "from 60 to 90 percent", "从60%提升到90%": two utilisations written out in a claim that names no job
_FROM_TO = re.compile(
    r"(?:from|从)\s*(\d+(?:\.\d+)?)\s*(?:%|percent)?\s*(?:to|提升至|提升到|提高到|到|至)\s*(\d+(?:\.\d+)?)\s*(?:%|percent)?",
    re.IGNORECASE,
)
_ABOUT_UTILIZATION = re.compile(r"utili[sz]ation|利用率", re.IGNORECASE)
# Figures that go with the inverse of utilisation at equal peak, and with utilisation itself.
INVERSE = frozenset({"duration_hours", "run_hours", "step_seconds"})
DIRECT = frozenset({"tokens_per_second", "tokens_per_second_per_accelerator", "model_flops_utilization"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A statement the catalog has checked against official figures."""

    check: MarketingCheck
    accelerator: str
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        """The evidence row."""
        return {
            "kind": "catalog",
            "accelerator": self.accelerator,
            "statement": self.check.claim,
            "finding": self.check.verdict,
            "official": self.check.official,
            "sources": list(self.check.sources),
        }


def words(text: str) -> frozenset[str]:
    """The telling words of a statement."""
    return frozenset(w.strip(".-") for w in _WORD.findall(text.lower()) if w.strip(".-") not in _PLAIN)


def checked_statement(snapshot: Snapshot, text: str) -> Checked | None:
    """The checked statement a text repeats, or None."""
    asked = words(text)
    best: tuple[float, str, MarketingCheck, str] | None = None
    for entry in snapshot.accelerators.values():
        for check in entry.marketing_checks:
            told = words(check.claim)
            share = len(asked & told) / len(told) if told else 0.0
            if share >= SAME_STATEMENT and (best is None or (share, check.claim) > (best[0], best[1])):
                best = (share, check.claim, check, entry.id)
    if best is None:
        return None
    return Checked(check=best[2], accelerator=best[3], verdict=verdict_of(best[2].verdict))


def verdict_of(finding: str) -> Verdict:
    """The catalog's finding in the vocabulary of claims."""
    first = finding.lower()
    if first.startswith(("false", "misleading", "wrong")):
        return "contradicted"
    if first.startswith(("true", "correct")):
        return "supported"
    return "optimistic" if first.startswith("approximately") else "not_decidable"


def utilizations_in(text: str | None) -> Utilizations | None:
    """Two utilisations that a claim writes out, where it speaks of utilisation."""
    if text is None or not _ABOUT_UTILIZATION.search(text):
        return None
    found = _FROM_TO.search(text)
    if found is None:
        return None
    low, high = (float(part) / 100.0 for part in found.groups())
    if not (0.0 < low <= 1.0 and 0.0 < high <= 1.0):
        return None
    return Utilizations(baseline=low, candidate=high)


def at_utilizations(metric: str, given: Utilizations) -> tuple[Reading, Reading] | None:
    """Baseline and candidate of a figure at two utilisations of one peak, per unit of work; None: not such a figure."""
    row: Mapping[str, Any] = {
        "kind": "arithmetic",
        "statement": "At equal peak, time is work over (peak x utilisation).",
        "baseline_utilization": given.baseline,
        "candidate_utilization": given.candidate,
    }
    if metric in INVERSE:
        values = (1.0 / given.baseline, 1.0 / given.candidate)
    elif metric in DIRECT:
        values = (given.baseline, given.candidate)
    else:
        return None
    base, candidate = (exactly(v, "arithmetic") for v in values)
    return Reading(figure=base), Reading(figure=candidate, evidence=(row,))
