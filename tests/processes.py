"""A real scheduler and real workers for the tests that need them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def dask_processes(workers: int, *options: str, log: Path | None = None) -> Iterator[str]:
    """A scheduler and workers as real processes, started the way a user starts them; yields the scheduler's address.

    They run outside the checkout, so that they find the package only where it is installed.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scheduler_file = folder / "scheduler.json"
        environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__MEMORY__TRANSFER": "0.1"}
        out = stack.enter_context(open(log or folder / "log", "w"))

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], cwd=folder, env=environment, stdout=out, stderr=out
            )
            stack.callback(_stop, process)
            return process

        started = [
            start(
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(scheduler_file),
            )
        ]
        _wait(scheduler_file.exists, started)
        where = ("--scheduler-file", str(scheduler_file), "--no-dashboard", "--host", "127.0.0.1")
        started += [start("worker", *where, *options) for _ in range(workers)]
        from distributed import Client

        with Client(scheduler_file=str(scheduler_file), set_as_default=False, timeout="60s") as client:
            client.wait_for_workers(workers, timeout=120)
            address = client.scheduler.address
        yield address


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(condition: object, processes: list[subprocess.Popen[bytes]]) -> None:
    patience = time.monotonic() + 120
    while not condition():  # type: ignore[operator]
        if time.monotonic() > patience or any(process.poll() is not None for process in processes):
            raise RuntimeError("the dask scheduler did not start")
        time.sleep(0.05)
