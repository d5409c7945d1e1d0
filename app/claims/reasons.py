"""One sentence for people, in English and Chinese, on why a claim stands or falls."""

from collections.abc import Mapping

from app.claims.metrics import Metric
from app.claims.verdict import ClaimedRange, Judgement, Verdict
from app.engine.outcome import Band

Words = dict[str, str]
GIB = 2.0**30

_ENDINGS: Mapping[Verdict, tuple[str, str]] = {
    "supported": ("the claim holds over the whole interval", "整个预测区间都支持该说法"),
    "optimistic": ("the claim is more likely wrong than right", "该说法偏乐观，错的可能性更大"),
    "pessimistic": ("the truth is better than claimed", "实际比该说法更好"),
    "contradicted": ("the interval excludes the claim", "预测区间排除了该说法"),
    "not_decidable": ("the interval reaches to both sides of the claim's limit", "预测区间跨越该说法的界限，无法判定"),
}


def number(value: float) -> str:
    """A figure at four significant digits, without an exponent where it can be read."""
    if value == 0.0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:.3g}"


def figure(value: float, relation: str, unit: str) -> str:
    """A figure with what it is measured in."""
    if relation == "ratio":
        return f"{number(value)}x"
    if relation == "percent_change":
        return f"{value:+.1f} %"
    return number(value) if unit in ("1", "yes = 1", "text") else f"{number(value)} {unit}"


def claimed_text(claimed: ClaimedRange, relation: str, unit: str, stated: float | None = None) -> tuple[str, str]:
    """The claim in words: between, at least, at most, or the single figure that was stated."""
    if stated is not None:
        return (figure(stated, relation, unit),) * 2
    low = None if claimed.low is None else figure(claimed.low, relation, unit)
    high = None if claimed.high is None else figure(claimed.high, relation, unit)
    if low is None or (relation == "ratio" and claimed.low == 0.0 and high is not None):
        return f"at most {high}", f"至多 {high}"
    if high is None:
        return f"at least {low}", f"至少 {low}"
    if claimed.low == claimed.high:
        return low, low
    return f"{low} to {high}", f"{low} 至 {high}"


def predicted_text(band: Band, relation: str, unit: str) -> tuple[str, str]:
    """The prediction in words; a known figure has no interval."""
    middle = figure(band.p50, relation, unit)
    if band.p10 == band.p90:
        return middle, middle
    low, high = figure(band.p10, relation, unit), figure(band.p90, relation, unit)
    return f"{middle} (p10 {low}, p90 {high})", f"{middle}（p10 {low}，p90 {high}）"


def decided(
    metric: Metric, relation: str, band: Band, claimed: ClaimedRange, stated: float | None, judged: Judgement, unit: str
) -> Words:
    """The sentence of a claim that was computed."""
    en_claim, zh_claim = claimed_text(claimed, relation, unit, stated)
    en_band, zh_band = predicted_text(band, relation, unit)
    en_end, zh_end = _ENDINGS[judged.verdict]
    if judged.verdict == "contradicted" and band.p10 == band.p90:
        en_end, zh_end = "the figures exclude the claim", "数据排除了该说法"
    if judged.verdict == "supported" and band.p10 == band.p90:
        en_end, zh_end = "the claim holds", "该说法成立"
    return {
        "en": f"{metric.en[0].upper()}{metric.en[1:]}: predicted {en_band}, claimed {en_claim}; {en_end}.",
        "zh-CN": f"{metric.zh}：预测 {zh_band}，声称 {zh_claim}；{zh_end}。",
    }


def sentence(en: str, zh: str) -> Words:
    """A sentence of its own."""
    return {"en": en if en.endswith(".") else f"{en}.", "zh-CN": zh if zh.endswith("。") else f"{zh}。"}


def cannot_run(who: str, why: str, numbers: Mapping[str, float]) -> Words:
    """The job does not run on one side."""
    name = {"candidate": "候选方案", "baseline": "基准方案"}[who]
    return sentence(f"The job cannot run on the {who}: {why}", f"该任务无法在{name}上运行：{_why_zh(why, numbers)}")


def not_like_this(why: str, numbers: Mapping[str, float]) -> Words:
    """A job that was claimed to run and does not."""
    return sentence(f"It cannot run like this: {why}", f"无法按此方式运行：{_why_zh(why, numbers)}")


def _why_zh(why: str, numbers: Mapping[str, float]) -> str:
    """A lack of memory in Chinese; other refusals keep the engine's words."""
    if "missing_bytes" not in numbers:
        return why
    needed, usable, lacking = (number(numbers[f"{k}_bytes"] / GIB) for k in ("needed", "available", "missing"))
    return f"每块加速器至少需要 {needed} GiB，可用 {usable} GiB，缺少 {lacking} GiB"


def unknown(who: str, why: str) -> Words:
    """A figure is not known on one side."""
    name = {"candidate": "候选方案", "baseline": "基准方案"}[who]
    return sentence(f"Not known for the {who}: {why}", f"{name}的该项数据未知：没有来源给出")
