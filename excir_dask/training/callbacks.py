"""What runs on the workers between two rounds. Imported only where XGBoost is wanted."""

from __future__ import annotations

import time
from typing import Any

from xgboost import collective
from xgboost.callback import TrainingCallback

_PAUSE = 0.1
"""seconds between two messages to the client"""

_stopped: set[str] = set()
"""tokens of the runs that this process must stop"""


def stop(token: str) -> None:
    """Let the training of a run end after the round that it is in; runs on a worker."""
    _stopped.add(token)


class Report(TrainingCallback):
    """Tells the client how far the training is, and stops it when the client has gone."""

    def __init__(self, token: str, topic: str | None):
        self.token = token
        self.topic = topic
        self.told = 0.0

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        if self.topic is not None and collective.get_rank() == 0 and time.monotonic() - self.told > _PAUSE:
            from distributed import get_worker

            self.told = time.monotonic()
            name, metrics = next(reversed(evals_log.items()))
            metric, values = next(reversed(metrics.items()))
            get_worker().log_event(self.topic, {"round": epoch + 1, "text": f"{name} {metric} {values[-1]:.5g}"})
        return self.token in _stopped
