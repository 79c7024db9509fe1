"""Commands, and a real scheduler and real workers for the tests that need them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

from click.testing import CliRunner

from excir_dask.cli import excir as command_line


@contextmanager
def dask_processes(
    workers: int,
    *options: str,
    log: Path | None = None,
    tls: Mapping[str, str] | None = None,
    scheduler_options: Sequence[str] = (),
) -> Iterator[str]:
    """A scheduler and workers as real processes, started the way a user starts them; yields the scheduler's address.

    They run outside the checkout, so that they find the package only where it is installed. ``options`` are the
    workers', ``tls`` has the files ca, cert and key.
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
            stack.callback(stop, process)
            return process

        common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(scheduler_file)]
        if tls is not None:
            common += ["--protocol", "tls", "--tls-ca-file", tls["ca"], "--tls-cert", tls["cert"]]
            common += ["--tls-key", tls["key"]]
        started = [start("scheduler", "--port", "0", *common, *scheduler_options)]
        _wait(scheduler_file.exists, started)
        started += [start("worker", *common, *options) for _ in range(workers)]
        from distributed import Client, Security

        security = None
        if tls is not None:
            security = Security(
                require_encryption=True, tls_ca_file=tls["ca"], tls_client_cert=tls["cert"], tls_client_key=tls["key"]
            )
        with Client(
            scheduler_file=str(scheduler_file), set_as_default=False, timeout="60s", security=security
        ) as client:
            if workers:
                client.wait_for_workers(workers, timeout=120)
            address = client.scheduler.address
        yield address


@contextmanager
def dask_worker(address: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """One more worker of a scheduler, which need not have come yet."""
    command = [sys.executable, "-m", "dask", "worker", address, "--host", "127.0.0.1", "--no-dashboard", *options]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(condition: Callable[[], bool], processes: list[subprocess.Popen[bytes]]) -> None:
    patience = time.monotonic() + 120
    while not condition():
        if time.monotonic() > patience or any(process.poll() is not None for process in processes):
            raise RuntimeError("the dask scheduler did not start")
        time.sleep(0.05)


def excir(*arguments: object, cwd: object = None) -> subprocess.CompletedProcess[str]:
    """The command as a user types it, in a process of its own."""
    code = "from excir_dask.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=300
    )


def excir_here(*arguments: object, cwd: object = ".") -> subprocess.CompletedProcess[str]:
    """The same in this process, where the process is not the point: a new one takes a second to import everything."""
    with chdir(str(cwd)):
        done = CliRunner().invoke(command_line, [str(one) for one in arguments], prog_name="excir")
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)
