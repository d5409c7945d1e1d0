"""From a training step to a training campaign: data loading, checkpoints, failures, restarts, reruns, energy."""

from app.engine.run.campaign import Campaign
from app.engine.run.conditions import Checkpointing, DataLoading, Power, Reliability, RunConditions
from app.engine.run.energy import Energy
from app.engine.run.goodput import Goodput
from app.engine.run.inverse import tokens_within
from app.engine.run.storage import DataStall, breakdown_with_stall
from app.engine.run.training_run import RunOutcome, run_training

__all__ = [
    "Campaign",
    "Checkpointing",
    "DataLoading",
    "DataStall",
    "Energy",
    "Goodput",
    "Power",
    "Reliability",
    "RunConditions",
    "RunOutcome",
    "breakdown_with_stall",
    "run_training",
    "tokens_within",
]
