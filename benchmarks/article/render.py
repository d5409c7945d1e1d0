"""``docs/article.md`` from the answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.catalog.snapshot import Snapshot
from app.claims.reasons import figure, number
from benchmarks.article.cases import Article, Case
from benchmarks.article.systems import systems_table

# Shorter times are what is left of rounding.
LEAST_HOURS = 1e-6
Answers = Mapping[str, Mapping[str, Any]]

HEAD = """# The article, claim by claim

Written by `python -m benchmarks.article`; a test fails when it is out of date. Every verdict is computed by the service
(`POST /v1/claims`) over the shipped catalog on {as_of}: H100 SXM 80 GB is the baseline and B200 SXM 180 GB the
candidate, each in its usual 8-accelerator server; prices are on-demand list prices.

How a verdict is reached: the engine predicts both sides with a p10 to p90 interval whose width comes from errors on
measurements it was not fitted to. Two predictions share part of that error, so a ratio is narrower than its sides
(`python -m benchmarks.ratio_errors`). A figure stated alone (2.5x) stands for what rounds to it. Facts (specifications,
memory, arithmetic) have no interval.

* **supported**: at most one chance in ten that the truth is worse than the worse end of the claim
* **contradicted**: at least nine chances in ten that it is worse
* **optimistic**: more likely worse than not
* **pessimistic**: the truth is better than claimed
* **not decidable**: the interval crosses the limit of the claim with its middle on the right side
"""


def render(snapshot: Snapshot, article: Article, answers: Answers, quote: Mapping[str, Any]) -> str:
    """The whole document."""
    parts = [
        HEAD.format(as_of=article.as_of.isoformat()),
        "\n".join(_table(article, answers)),
        "\n".join(_details(article, answers)),
        "\n".join(_drivers(article, quote)),
        "\n".join(_pitfalls(article, quote)),
        "\n".join(systems_table(snapshot, article.systems)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _table(article: Article, answers: Answers) -> Iterator[str]:
    yield "## The table"
    yield ""
    yield "| claim | claimed | verdict | predicted (p10 to p90) | would hold | evidence |"
    yield "|---|---|---|---|---|---|"
    for case in article.cases:
        row = answers[case.id]
        condition = row["condition"]["text"]["en"] if row["condition"] else ""
        cells = (
            f"[{case.id}](#{case.id})",
            _claimed(row),
            f"**{row['verdict'].replace('_', ' ')}**",
            _predicted(row),
            condition.removeprefix("It would hold with ").rstrip("."),
            "; ".join(_short(e) for e in row["evidence"][:3]) or "arithmetic",
        )
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _unit(row: Mapping[str, Any]) -> str:
    return str(row["unit"]) if row["unit"] not in (None, "ratio", "percent") else ""


def _claimed(row: Mapping[str, Any]) -> str:
    claimed, relation = row["claimed"], row["relation"] or "absolute"
    if claimed is None:
        return "in words"
    if claimed["equals"] is not None:
        return figure(claimed["equals"], relation, _unit(row) or "1")
    low, high = claimed["low"], claimed["high"]
    unit = _unit(row) or "1"
    if low is None or (low == 0.0 and high is not None and relation == "ratio"):
        return f"at most {figure(high, relation, unit)}"
    if high is None:
        return f"at least {figure(low, relation, unit)}"
    return f"{figure(low, relation, unit)} to {figure(high, relation, unit)}"


def _predicted(row: Mapping[str, Any]) -> str:
    band, relation = row["predicted"], row["relation"] or "absolute"
    if band is None:
        return "see below"
    unit = _unit(row) or "1"
    middle = figure(band["p50"], relation, unit)
    if band["p10"] == band["p90"]:
        return middle
    return f"{middle} ({figure(band['p10'], relation, unit)} to {figure(band['p90'], relation, unit)})"


def _short(row: Mapping[str, Any]) -> str:
    kind = row["kind"]
    if kind == "catalog":
        return f"catalog row {row['accelerator']}"
    if kind == "price":
        return f"{row['provider']} {_price(row)}"
    if kind == "measurement":
        return f"measured {row['id']}"
    return str(row.get("statement", kind))


def _price(row: Mapping[str, Any]) -> str:
    price = row.get("native_price")
    if not price:
        return "price row"
    return f"{number(float(price['amount']))} {price['currency']}/{row['price_unit']} {_seen(row)}"


def _seen(row: Mapping[str, Any]) -> str:
    return f"seen {row['observed_on']}" if row.get("observed_on") else "of unknown date"


def _details(article: Article, answers: Answers) -> Iterator[str]:
    yield "## Claim by claim"
    for case in article.cases:
        yield from _detail(case, answers[case.id])


def _detail(case: Case, row: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"### {case.id}"
    yield ""
    if case.says:
        yield f"> {case.says}"
        yield ""
    yield f"**{row['verdict'].replace('_', ' ')}.** {row['reason']['en']}"
    yield ""
    yield f"{row['reason']['zh-CN']}"
    yield ""
    if row["condition"]:
        yield f"* {row['condition']['text']['en']}"
    for name in ("baseline", "candidate"):
        text = _side(row[name])
        if text:
            yield f"* {name}: {text}"
        numbers = {} if row[name] is None else row[name].get("numbers") or {}
        if numbers:
            yield f"* {name}: {', '.join(f'{key} {_value(value)}' for key, value in numbers.items())}"
    if row["chances"]:
        worse, within, better = (f"{row['chances'][key]:.0%}" for key in ("worse", "within", "better"))
        yield f"* chances: worse than claimed {worse}, as claimed {within}, better {better}"
    for assumed in row["assumptions"]:
        yield f"* assumed: {assumed['id']} = {_value(assumed['value'])} ({assumed['source']})"
    for evidence in row["evidence"]:
        yield f"* evidence: {_long(evidence)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(v)}" for key, v in value.items())
    return number(float(value)) if isinstance(value, int | float) else str(value)


def _side(side: Mapping[str, Any] | None) -> str:
    if side is None:
        return ""
    if side.get("training") is not None:
        kinds = (("training", side["training"]), ("inference", side["inference"]))
        return "; ".join(f"{kind} {_items(rows['items'])}" for kind, rows in kinds)
    value, unit = side.get("value"), side["unit"]
    if value is None:
        return str(side["why"])
    shown = number(value["p50"]) if unit in ("1", "yes = 1", "text") else f"{number(value['p50'])} {unit}"
    if value["p10"] != value["p90"]:
        shown += f" ({number(value['p10'])} to {number(value['p90'])})"
    made = side.get("configuration")
    if made is None:
        return shown
    plan = {key: value for key, value in made["plan"].items() if key in ("tensor", "pipeline", "context", "data")}
    where = side["label"]["en"] if side.get("label") else f"{made['accelerators']} x {made['accelerator']}"
    degrees = ", ".join(f"{key} {value}" for key, value in plan.items() if value not in (1, None))
    return f"{shown} on {where}, {degrees}".rstrip(", ")


def _items(rows: list[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{row['net']['amount']} {row['net']['currency']} ({row['label']['en']})" for row in rows if row["net"]
    )


def _long(row: Mapping[str, Any]) -> str:
    kind = row["kind"]
    if kind == "measurement":
        return (
            f"measured {number(float(row['measured']))}, predicted {number(float(row['predicted']))} {row['metric']}: "
            f"{row['model']} on {row['accelerators']} accelerators, {row['precision']} ({row['source']})"
        )
    if kind == "price":
        return f"price: {row['provider']} {row.get('instance_type')} {_price(row)} ({row.get('source')})"
    if kind == "catalog" and "statement" in row:
        return (
            f'checked statement "{row["statement"]}": {row["finding"]}; {row["official"]} ({"; ".join(row["sources"])})'
        )
    if kind == "catalog":
        shown = number(row["value"]) if row["value"] is not None else "not stated"
        return f"{row['accelerator']} {row['field']} = {shown} {row['unit']} ({row['sources'][0]})"
    return str(row["statement"])


def _drivers(article: Article, quote: Mapping[str, Any]) -> Iterator[str]:
    yield "## What drives the cost, and where a quote shows it"
    yield ""
    yield f"Example: {quote['label']['en']}; a campaign of two full and six partial runs of 10 billion parameters."
    yield ""
    yield "| driver | in the article | in the quote |"
    yield "|---|---|---|"
    run, performance, each = quote["run"], quote["performance"], quote["unit_costs"]["per_experiment"]
    split = ", ".join(f"{name} {number(hours)} h" for name, hours in run["hours_split"].items() if hours > LEAST_HOURS)
    largest = sorted(performance["time_breakdown"].items(), key=lambda kv: -kv[1])[:4]
    memory = sorted(performance["memory_breakdown_bytes"].items(), key=lambda kv: -kv[1])[:3]
    shown = {
        "time": f"{number(performance['duration_hours']['p50'])} h in all: {split}",
        "waste": "step: " + ", ".join(f"{name} {share:.0%}" for name, share in largest)
        + "; memory: " + ", ".join(f"{name} {number(size / 1e9)} GB" for name, size in memory)
        + f"; waiting for data {run['data']['stall_share']:.0%}",
        "trial_and_error": f"{number(performance['iterations_per_week'])} full runs a week, "
        f"{each['amount']} {each['currency']} per experiment",
    }  # fmt: skip
    for driver in article.cost_drivers:
        yield f"| {driver['id']} | {driver['text']} | {shown[driver['id']]} |"


def _pitfalls(article: Article, quote: Mapping[str, Any]) -> Iterator[str]:
    yield "## Pitfalls, as advice with the number that triggers it"
    yield ""
    yield "| pitfall | in the article | severity | advice | number |"
    yield "|---|---|---|---|---|"
    for pitfall in article.pitfalls:
        for advice in quote["advice"]:
            if advice["code"] == pitfall["id"]:
                value = advice["numbers"].get(pitfall["needs"])
                message = advice["message"] if isinstance(advice["message"], str) else advice["message"]["en"]
                text = f"| {pitfall['id']} | {pitfall['text']} | {advice['severity']} | {message} |"
                yield f"{text} {pitfall['needs']} = {_value(value)} |"
