"""A real SSH server on loopback, as a process: python ssh_server.py FOLDER lets FOLDER/key in and runs what it is told.

When it is ended, so is everything that was started through it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import asyncssh


async def pump(source: asyncio.StreamReader, target: asyncssh.SSHWriter) -> None:
    while data := await source.read(2**16):
        with suppress(OSError):  # nobody listens any more
            target.write(data)


async def serve(folder: Path) -> None:
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    user_key.write_private_key(folder / "key")
    (folder / "key").chmod(0o600)
    user_key.write_public_key(folder / "authorized")
    groups: list[int] = []

    async def run(process: asyncssh.SSHServerProcess) -> None:
        child = await asyncio.create_subprocess_shell(
            process.command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, cwd=folder, start_new_session=True,
        )  # fmt: skip
        groups.append(child.pid)  # a session of its own is a group of its own
        # to the end before the exit status: a channel that has one takes no more output
        await asyncio.gather(pump(child.stdout, process.stdout), pump(child.stderr, process.stderr))
        process.exit(await child.wait())

    def stop() -> None:  # SSHCluster only hangs up: what it started would stay
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        os._exit(0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[host_key], authorized_client_keys=str(folder / "authorized"),
        process_factory=run, encoding=None,
    )  # fmt: skip
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{server.get_port()} {host_key.export_public_key().decode()}")
    print(server.get_port(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
