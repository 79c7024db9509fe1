"""Callbacks that run on the workers between rounds. Imported only when XGBoost is needed."""

from __future__ import annotations

import time
from typing import Any

from xgboost import collective
from xgboost.callback import TrainingCallback

_PAUSE = 0.1
"""seconds between two messages to the client"""

_stopped: set[str] = set()
"""tokens of runs that this process must stop"""


def stop(token: str) -> None:
    """Stop the training of a run after the current round; runs on a worker."""
    _stopped.add(token)


class Report(TrainingCallback):
    """Reports progress to the client, and stops the training if the client asks for it."""

    def __init__(self, token: str, topic: str | None):
        self.token = token
        self.topic = topic
        self.reported = 0.0

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        if self.topic is not None and collective.get_rank() == 0 and time.monotonic() - self.reported > _PAUSE:
            from distributed import get_worker

            self.reported = time.monotonic()
            name, metrics = next(reversed(evals_log.items()))
            metric, values = next(reversed(metrics.items()))
            get_worker().log_event(self.topic, {"round": epoch + 1, "text": f"{name} {metric} {values[-1]:.5g}"})
        return self.token in _stopped
