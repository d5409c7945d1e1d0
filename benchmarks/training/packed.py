"""Many rows as one array problem: every row a job with its own chip, plan and setting; the effects a flat vector."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.outcome import Infeasible
from app.engine.training.architecture import Architecture, architecture_of, stack
from app.engine.training.calibration import BASES, HIGHEST_MATMUL_SHARE, Coefficients, TrainingCalibration
from app.engine.training.hardware_arrays import Hardware
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.memory import Formats
from app.engine.training.plans import PlanArrays, concatenate
from app.engine.training.problem import Problem
from app.engine.training.setting import Setting
from app.engine.training.step import Job, step_times
from benchmarks.training.rows import Row
from benchmarks.training.stated import rank_row

Array = NDArray[np.float64]

# step of the numerical derivative, and the quantities that layer times depend on; the others only enter the step
STEP = 1.0e-4
LAYER_QUANTITIES = frozenset(
    (
        "matmul_share",
        "head",
        "expert_share",
        "attention_share",
        "elementwise",
        "quantize",
        "permute",
        "scan",
        "slowdown",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Rows side by side. ``design[quantity]`` maps effects to the log of that quantity, row by row."""

    names: tuple[str, ...]
    design: dict[str, Array]
    architecture: Architecture
    hardware: Hardware
    plans: PlanArrays
    job: Job
    formats: Formats
    curves: dict[str, Array]
    fused: Array
    node_dispatch: Array

    def take(self, index: NDArray[np.intp]) -> "Packed":
        """Some of the rows."""

        def cut(value: object) -> object:
            array = np.asarray(value)
            return array[..., index]

        def every(group: Architecture | Hardware | Job | Formats) -> dict[str, object]:
            return {f.name: cut(getattr(group, f.name)) for f in fields(group)}

        return replace(
            self,
            design={name: matrix[index] for name, matrix in self.design.items()},
            architecture=Architecture(**every(self.architecture)),  # type: ignore[arg-type]
            hardware=Hardware(**every(self.hardware)),  # type: ignore[arg-type]
            plans=self.plans.take(index),
            job=Job(**every(self.job)),  # type: ignore[arg-type]
            formats=Formats(**every(self.formats)),  # type: ignore[arg-type]
            curves={name: value[index] for name, value in self.curves.items()},
            fused=self.fused[index],
            node_dispatch=self.node_dispatch[index],
        )

    def touched(self, effect: int) -> NDArray[np.intp]:
        """Rows that an effect reaches."""
        reached = np.zeros(len(self.plans), dtype=bool)
        for matrix in self.design.values():
            reached |= matrix[:, effect] != 0.0
        return np.nonzero(reached)[0]

    def coefficients(self, effects: Array) -> Coefficients:
        """Coefficients of every row under a vector of effects."""
        values = {name: BASES[name] * np.exp(self.design[name] @ effects) for name in BASES}
        values["matmul_share"] = np.minimum(values["matmul_share"], HIGHEST_MATMUL_SHARE)
        head = np.minimum(BASES["matmul_share"] * np.exp(self.design["head"] @ effects), HIGHEST_MATMUL_SHARE)
        return Coefficients(
            **values,
            curve_max_share=self.curves["max_share"],
            curve_half_m=self.curves["half_m"],
            curve_half_n=self.curves["half_n"],
            curve_half_k=self.curves["half_k"],
            head_max_share=self.curves["head"] * head,
            fused_attention=self.fused,
            node_dispatch=self.node_dispatch,
        )

    def layers(self, c: Coefficients) -> LayerTimes:
        """Layer times of every row."""
        return layer_times(self.architecture, self.plans, self.job.sequence, self.job.document, self.hardware, c)

    def log_rates(self, effects: Array) -> Array:
        """Log of tokens per second and accelerator of every row."""
        c = self.coefficients(effects)
        return self._log_rates(c, self.layers(c))

    def _log_rates(self, c: Coefficients, layers: LayerTimes) -> Array:
        times = step_times(self.architecture, self.plans, layers, self.job, self.hardware, c, self.formats)
        tokens = np.asarray(self.job.global_batch * self.job.sequence)
        return np.asarray(np.log(tokens / (times.total * self.hardware.accelerators)))

    def sensitivity(self, effects: Array) -> Array:
        """Derivative of every row's log rate to every effect, shape (rows, effects): by quantity, then by design."""
        c = self.coefficients(effects)
        layers = self.layers(c)
        before = self._log_rates(c, layers)
        out = np.zeros((before.size, effects.size))
        for name, matrix in self.design.items():
            if not matrix.any():
                continue
            field = "head_max_share" if name == "head" else name
            free = self._below_limit(name, c)
            moved = replace(c, **{field: getattr(c, field) * np.exp(STEP)})
            moved_layers = self.layers(moved) if name in LAYER_QUANTITIES else layers
            out += ((self._log_rates(moved, moved_layers) - before) / STEP * free)[:, None] * matrix
        return out

    def _below_limit(self, name: str, c: Coefficients) -> Array:
        """1 where an effect on a quantity still moves it, 0 at its limit."""
        if name == "head":
            return np.asarray(c.head_max_share < self.curves["head"] * HIGHEST_MATMUL_SHARE, dtype=np.float64)
        if name == "matmul_share":
            return np.asarray(c.matmul_share < HIGHEST_MATMUL_SHARE, dtype=np.float64)
        return np.ones(len(self.plans))


def resolve_plans(
    rows: Sequence[Row], calibration: TrainingCalibration
) -> tuple[list[Problem | Infeasible], list[PlanArrays | None]]:
    """The plan each row ran: the stated fields pinned, the others searched."""
    problems: list[Problem | Infeasible] = []
    plans: list[PlanArrays | None] = []
    for row in rows:
        found = rank_row(row, calibration)
        if isinstance(found, Infeasible):
            problems.append(found)
            plans.append(None)
        else:
            problem, ranking, _ = found
            problems.append(problem)
            plans.append(ranking.plans.take(np.array([ranking.best])))
    return problems, plans


def effect_names(settings: Sequence[Setting]) -> tuple[str, ...]:
    """All effects that any row can show, sorted."""
    names = {name for setting in settings for quantity in BASES for name, _ in setting.keys(quantity)}
    names |= {name for s in settings for name, _ in replace(s, precision="16bit").keys("matmul_share")}
    return tuple(sorted(names))


def pack(
    problems: Sequence[Problem], plans: Sequence[PlanArrays], calibration: TrainingCalibration, names: tuple[str, ...]
) -> Packed:
    """Put problems and their plans side by side."""
    settings = [p.setting for p in problems]
    position = {name: i for i, name in enumerate(names)}

    def matrix(quantity: str, chosen: Sequence[Setting]) -> Array:
        out = np.zeros((len(chosen), len(names)))
        for i, setting in enumerate(chosen):
            for name, covariate in setting.keys(quantity):
                if name in position:
                    out[i, position[name]] = covariate
        return out

    def gather(kind: type, values: Sequence[object]) -> dict[str, Array]:
        return {f.name: np.array([float(getattr(v, f.name)) for v in values]) for f in fields(kind)}

    design = {quantity: matrix(quantity, settings) for quantity in BASES}
    design["head"] = matrix("matmul_share", [replace(s, precision="16bit") for s in settings])
    curves = [calibration.curve(s.generation, s.curve_format) for s in settings]
    columns = {
        name: np.array([getattr(c, name) for c in curves]) for name in ("max_share", "half_m", "half_n", "half_k")
    }
    columns["head"] = np.array([calibration.curve(s.generation, "bf16").max_share for s in settings])
    return Packed(
        names=names,
        design=design,
        architecture=stack([architecture_of(p.workload.transformer, p.workload.mtp_layers) for p in problems]),
        hardware=Hardware(**gather(Hardware, [p.hardware for p in problems])),
        plans=concatenate(list(plans)),
        job=Job(**gather(Job, [p.job for p in problems])),
        formats=Formats(**gather(Formats, [p.formats for p in problems])),
        curves=columns,
        fused=np.array([float(s.fused_attention) for s in settings]),
        node_dispatch=np.array([float(s.node_dispatch) for s in settings]),
    )
