"""Every figure that can be claimed: its unit, which way is better, which jobs it applies to, where it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.claims.verdict import Better
from app.engine.outcome import Band

Run = Mapping[str, Any]
Option = Mapping[str, Any]
Source = Literal["specification", "run", "money", "split", "scaling", "feasible", "items", "text"]

BOTH = ("training", "inference")
TRAINING = ("training",)
INFERENCE = ("inference",)
NONE: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure.

    Parameters
    ----------
    unit : str
        Of an absolute value.
    better : str
        ``higher`` or ``lower``, from the buyer's side.
    jobs : tuple of str
        Kinds of job it applies to; empty = it needs none.
    source : str
        What has to be computed to know it.
    read : callable or None
        Band from a run (``run``) or an option (``money``).
    """

    id: str
    unit: str
    better: Better
    jobs: tuple[str, ...]
    source: Source
    en: str
    zh: str
    read: Callable[[Mapping[str, Any]], Band | None] | None = None


def band_of(value: Any) -> Band | None:
    """A band from its JSON, or from a plain number."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return Band(p10=float(value["p10"]), p50=float(value["p50"]), p90=float(value["p90"]))
    return Band(p10=float(value), p50=float(value), p90=float(value))


def _at(*path: str) -> Callable[[Mapping[str, Any]], Band | None]:
    def read(row: Mapping[str, Any]) -> Band | None:
        value: Any = row
        for key in path:
            if not isinstance(value, Mapping) or value.get(key) is None:
                return None
            value = value[key]
        return band_of(value)

    return read


def _with_rate(*path: str) -> Callable[[Run], Band | None]:
    """A plain figure that is proportional to the training speed: it carries the speed's spread."""
    plain = _at(*path)

    def read(run: Run) -> Band | None:
        value, rate = plain(run), run["performance"]["tokens_per_second"]
        if value is None:
            return None
        return _around(value.p50, rate["p10"] / rate["p50"], rate["p90"] / rate["p50"])

    return read


def _with_hours(*path: str) -> Callable[[Run], Band | None]:
    """A plain figure that is proportional to the campaign's hours."""
    plain = _at(*path)

    def read(run: Run) -> Band | None:
        value, hours = plain(run), run.get("hours")
        if value is None or hours is None:
            return value
        down, up = hours["p10"] / hours["p50"], hours["p90"] / hours["p50"]
        return _around(value.p50, down, up)

    return read


def _around(middle: float, down: float, up: float) -> Band:
    """A figure with the spread of another. Bills that do not differ may differ by a cent, each line being rounded."""
    return Band(p10=middle * min(down, 1.0), p50=middle, p90=middle * max(up, 1.0))


def _iterations(run: Run) -> Band | None:
    value, hours = run["performance"]["iterations_per_week"], run["performance"]["run_hours"]
    return _around(value, hours["p50"] / hours["p90"], hours["p50"] / hours["p10"])


def _money(path: tuple[str, ...]) -> Callable[[Option], Band | None]:
    """An amount with the spread of the option's net."""

    def read(option: Option) -> Band | None:
        value: Any = option
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        net = option["cost"].get("net")
        if value is None or not isinstance(net, Mapping) or net.get("p50") is None:
            return None
        p10, p50, p90 = (float(net[q]["amount"]) for q in ("p10", "p50", "p90"))
        amount = float(value["amount"])
        if p50 <= 0.0:
            return None
        return _around(amount, p10 / p50, p90 / p50)

    return read


def _units(*names: str) -> Callable[[Option], Band | None]:
    def read(option: Option) -> Band | None:
        for name in names:
            found = _money(("unit_costs", name))(option)
            if found is not None:
                return found
        return None

    return read


def _metric(
    name: str, unit: str, better: Better, jobs: tuple[str, ...], source: Source, en: str, zh: str,
    read: Callable[[Mapping[str, Any]], Band | None] | None = None,
) -> Metric:  # fmt: skip
    return Metric(id=name, unit=unit, better=better, jobs=jobs, source=source, en=en, zh=zh, read=read)


P = "performance"
_ROWS = (
    _metric("peak_flops", "FLOP/s", "higher", NONE, "specification", "dense peak", "稠密峰值算力"),
    _metric("memory_bytes", "byte", "higher", NONE, "specification", "memory", "显存容量"),
    _metric("memory_bandwidth_bytes_per_s", "byte/s", "higher", NONE, "specification", "memory bandwidth", "显存带宽"),
    _metric("scale_up_bytes_per_s_per_accelerator", "byte/s", "higher", NONE, "specification",
            "scale-up link rate per direction", "单向片间互联带宽"),
    _metric("scale_out_bytes_per_s_per_accelerator", "byte/s", "higher", NONE, "specification",
            "usual network rate", "常见网络带宽"),
    _metric("scale_up_domain", "accelerators", "higher", NONE, "specification", "scale-up domain", "互联域规模"),
    _metric("pcie_bytes_per_s", "byte/s", "higher", NONE, "specification", "host link rate", "主机链路带宽"),
    _metric("thermal_design_power_w", "W", "lower", NONE, "specification", "thermal design power", "热设计功耗"),
    _metric("specification", "text", "higher", NONE, "text", "specification", "规格"),
    _metric("feasible", "yes = 1", "higher", BOTH, "feasible", "feasibility", "可行性"),
    _metric("duration_hours", "h", "lower", TRAINING, "run", "calendar time", "日历时长", _at("duration_hours")),
    _metric("run_hours", "h", "lower", TRAINING, "run", "time of one full run", "单次完整训练时长",
            _at(P, "run_hours")),
    _metric("step_seconds", "s", "lower", TRAINING, "run", "step time", "单步时间", _at(P, "step_seconds")),
    _metric("tokens_per_second", "token/s", "higher", TRAINING, "run", "training speed", "训练速度",
            _at(P, "tokens_per_second")),
    _metric("tokens_per_second_per_accelerator", "token/s", "higher", TRAINING, "run",
            "training speed per accelerator", "单卡训练速度", _at(P, "tokens_per_second_per_accelerator")),
    _metric("model_flops_utilization", "1", "higher", TRAINING, "run", "model FLOPs utilisation", "模型算力利用率",
            _with_rate(P, "model_flops_utilization")),
    _metric("accelerator_utilization", "1", "higher", TRAINING, "run", "share of time the accelerators compute",
            "加速器计算时间占比", _at(P, "accelerator_utilization")),
    _metric("goodput", "1", "higher", TRAINING, "run", "productive share of time", "有效时间占比", _at(P, "goodput")),
    _metric("iterations_per_week", "1/week", "higher", TRAINING, "run", "full runs per week", "每周完整训练次数",
            _iterations),
    _metric("minimum_model_parallel_size", "accelerators", "lower", TRAINING, "split",
            "accelerators one copy of the model is cut over at least", "单个模型副本最少切分的加速器数"),
    _metric("strong_scaling_efficiency", "1", "higher", TRAINING, "scaling", "strong-scaling efficiency",
            "强扩展效率"),
    _metric("weak_scaling_efficiency", "1", "higher", TRAINING, "scaling", "weak-scaling efficiency", "弱扩展效率"),
    _metric("output_tokens_per_second", "token/s", "higher", INFERENCE, "run", "output speed of the fleet",
            "集群输出速度", _at(P, "output_tokens_per_second")),
    _metric("output_tokens_per_second_per_accelerator", "token/s", "higher", INFERENCE, "run",
            "output speed per accelerator", "单卡输出速度", _at(P, "output_tokens_per_second_per_accelerator")),
    _metric("requests_per_second", "1/s", "higher", INFERENCE, "run", "requests served per second", "每秒请求数",
            _at(P, "requests_per_second")),
    _metric("ttft_ms", "ms", "lower", INFERENCE, "run", "mean time to first token", "首字延迟均值",
            _at(P, "ttft_ms", "mean")),
    _metric("tpot_ms", "ms", "lower", INFERENCE, "run", "mean time per output token", "每字延迟均值",
            _at(P, "tpot_ms", "mean")),
    _metric("e2e_ms", "ms", "lower", INFERENCE, "run", "mean time of a request", "请求总时延均值",
            _at(P, "e2e_ms", "mean")),
    _metric("replicas", "replicas", "lower", INFERENCE, "run", "replicas needed", "所需副本数", _at(P, "replicas")),
    _metric("accelerators", "accelerators", "lower", BOTH, "run", "accelerators needed", "所需加速器数",
            _at("accelerators")),
    _metric("energy_kwh", "kWh", "lower", BOTH, "run", "energy", "能耗", _with_hours("energy", "kwh")),
    _metric("kg_co2e", "kg", "lower", BOTH, "run", "carbon", "碳排放", _with_hours("energy", "kg_co2e")),
    _metric("cost", "money", "lower", BOTH, "money", "total cost", "总成本", _money(("cost", "net", "p50"))),
    _metric("cost_per_million_tokens", "money", "lower", BOTH, "money", "cost per million tokens",
            "每百万 token 成本", _units("per_million_tokens", "per_million_tokens_blended")),
    _metric("cost_per_run", "money", "lower", TRAINING, "money", "cost per run", "单次训练成本", _units("per_run")),
    _metric("cost_per_experiment", "money", "lower", TRAINING, "money", "cost per experiment", "单次实验成本",
            _units("per_experiment")),
    _metric("cost_per_accelerator_hour", "money", "lower", BOTH, "money", "cost per accelerator-hour",
            "每卡时成本", _units("per_accelerator_hour")),
    _metric("data_stall_share", "1", "lower", TRAINING, "run", "share of time waiting for data",
            "等待数据的时间占比", _at("data", "stall_share")),
    _metric("interruptions", "per run", "lower", TRAINING, "run", "expected interruptions of a run",
            "单次训练预期中断次数", _at(P, "interruptions")),
    _metric("kv_cache_tokens", "token", "higher", INFERENCE, "run", "tokens one replica's cache holds",
            "单副本缓存可容纳 token 数", _at(P, "kv_cache_tokens")),
    _metric("concurrency_per_replica", "requests", "higher", INFERENCE, "run", "requests in flight per replica",
            "单副本并发请求数", _at(P, "concurrency_per_replica")),
    _metric("accelerators_per_replica", "accelerators", "lower", INFERENCE, "run", "accelerators per replica",
            "单副本加速器数", _at(P, "accelerators_per_replica")),
    _metric("utilization", "1", "higher", INFERENCE, "run", "load over capacity", "负载与容量之比",
            _at(P, "utilization")),
    _metric("cost_per_million_input_tokens", "money", "lower", INFERENCE, "money", "cost per million input tokens",
            "每百万输入 token 成本", _units("per_million_input_tokens")),
    _metric("cost_per_million_output_tokens", "money", "lower", INFERENCE, "money", "cost per million output tokens",
            "每百万输出 token 成本", _units("per_million_output_tokens")),
    _metric("lifetime_inference_over_training", "1", "higher", NONE, "items",
            "lifetime inference spend over training spend", "推理总支出与训练支出之比"),
)  # fmt: skip
METRICS: Mapping[str, Metric] = {metric.id: metric for metric in _ROWS}


# Parts of a step and of memory are claimed by their name: time_breakdown.bubble, memory_breakdown_bytes.weights.
_PARTS: Mapping[str, tuple[str, str, str]] = {
    "time_breakdown": ("1", "share of a step", "单步时间占比"),
    "memory_breakdown_bytes": ("byte", "memory", "显存占用"),
}


def find_metric(name: str) -> Metric | None:
    """A metric by its name, parts of the breakdowns included."""
    if name in METRICS:
        return METRICS[name]
    group, _, part = name.partition(".")
    if group not in _PARTS or not part:
        return None
    unit, en, zh = _PARTS[group]
    better: Better = "higher" if part == "headroom" else "lower"
    return _metric(name, unit, better, BOTH, "run", f"{en}: {part}", f"{zh}：{part}", _at(P, group, part))


def applicable_to(kind: str) -> list[str]:
    """Names of the figures of one kind of job."""
    return sorted(m.id for m in METRICS.values() if kind in m.jobs or not m.jobs)
