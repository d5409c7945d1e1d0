"""Answers on a terminal: plain tables that line up, or JSON."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
import typer

from app.estimates.service import Estimate


def print_json(document: Any) -> None:
    """Write a document as indented JSON."""
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Write rows in columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        typer.echo("  ".join(cells).rstrip())


def amount(money: Mapping[str, str] | None) -> str:
    """Write an amount with its own currency and thousands separators."""
    if money is None:
        return "not priced"
    return f"{money['currency']} {Decimal(money['amount']):,f}"


def options_table(items: Sequence[Mapping[str, Any]], *, most: int = 10) -> None:
    """Write the ranked options of every item; the selected one is marked."""
    for item in items:
        typer.echo(f"{item['id']} ({item['kind']}, by {item['objective']})")
        rows = [_option_row(item, option) for option in item["options"][:most]]
        table(["", "option", "net", "P10 .. P90", "time", "configuration"], rows, right=(2,))


def _option_row(item: Mapping[str, Any], option: Mapping[str, Any]) -> list[str]:
    cost, hours = option["cost"], option["performance"].get("duration_hours")
    spread = cost["net"] or {}
    between = "" if spread.get("p10") is None else f"{_plain(spread['p10'])} .. {_plain(spread['p90'])}"
    return [
        "*" if option["id"] == item["selected_option_id"] else "",
        option["id"],
        amount(cost["totals"]["net"] if cost["totals"] else None),
        between,
        f"{hours['p50']:.4g} h" if hours else "per month",
        option["label"]["en"],
    ]


def supply_lines(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write what became of the supply selected before, and what is cheaper now."""
    for row in rows:
        if row["status"] == "gone":
            typer.echo(f"{row['item']}: {row['before']['label']['en']} is gone ({row['outcome']}): {row['reason']}")
            typer.echo(row["next"])
            continue
        typer.echo(f"{row['item']}: {row['status']} {row['after']['label']['en']}")
        cheaper = row["cheaper"]
        if cheaper is not None:
            typer.echo(
                f"  cheaper now: {cheaper['option_id']} at {amount(cheaper['net'])} "
                f"({cheaper['label']['en']}); saves {amount(cheaper['saves'])}"
            )


def _plain(money: Mapping[str, str]) -> str:
    return f"{Decimal(money['amount']):,.0f}"


def estimate_table(estimate: Estimate) -> None:
    """Write an estimate: options, total, range, and what it depends on."""
    options_table(estimate.content["items"])
    total_line(estimate.content["totals"], estimate.pins)


def total_line(totals: Mapping[str, Any] | None, pins: Mapping[str, Any]) -> None:
    """Write the total of the selected options with its range and its pins."""
    if totals is None:
        typer.echo("total: none, because a part has no price")
    else:
        low, high = amount(totals["net_p10"]), amount(totals["net_p90"])
        typer.echo(f"total {amount(totals['net'])} net (P10 {low}, P90 {high})")
        if totals["gross"] is None:
            typer.echo("tax: not determined (an estimate, not tax advice)")
        else:
            typer.echo(f"gross {amount(totals['gross'])} with tax")
    typer.echo(f"catalog {pins['catalog_revision'][:16]} as of {pins['as_of']}, engine {pins['engine_version']}")
