"""Full disks, results inside the lake, pipes, secrets in names, and open connections."""

import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from commands import excir, refused, write_lake

from excir_dask.clusters.address import warn_if_open

pytestmark = pytest.mark.usefixtures("synchronous")


@contextmanager
def small_disk(most: int) -> Iterator[None]:
    """Files may have so many bytes, beyond which writing fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_a_full_disk_is_named_and_nothing_half_written_is_left(workplace, tmp_path, option):
    target = tmp_path / "target"
    with small_disk(500):
        done = excir("explain", workplace / "lake", "--output", "y", option, target)
    line = refused(done, 75)
    assert str(target) in line
    assert "free space there" in line
    assert [name for name in files(tmp_path) if not name.endswith("run.json")] == []


@pytest.mark.parametrize("folder", ["", "result", "region=eu/result", "../lake/result"])
def test_nothing_is_written_into_the_lake(tmp_path, folder):
    write_lake(tmp_path / "lake")
    (tmp_path / "link").symlink_to("lake")
    place = tmp_path / "lake" / folder
    for name in ("lake", "link"):
        lake = tmp_path / name
        for command in (
            ["explain", lake, "--output", "y", "--out", place],
            ["explain", lake, "--output", "y", "--checkpoint", place],
            ["sweep", lake, "--output", "y", "--out", place],
        ):
            assert "inside the lake" in refused(excir(*command), 2)
        config = tmp_path / "audit.yaml"
        config.write_text(f"lake: {lake}\noutput: y\nresults: {place}\n")
        assert "inside the lake" in refused(excir("audit", config), 2)
        assert "inside the lake" in refused(excir("audit", "validate", config), 2)
    assert files(tmp_path / "lake") == ["part-0.parquet", "part-1.parquet"]


def test_names_that_a_lake_ignores_and_folders_beside_it_may_hold_results(tmp_path):
    write_lake(tmp_path / "lake")
    for folder in ("lake/_results", "lake-results"):
        done = excir("explain", tmp_path / "lake", "--output", "y", "--checkpoint", tmp_path / folder)
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("option", ["--config", "--groups", "--cluster", "--model"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_pipes_and_devices_are_not_read(workplace, tmp_path, option, kind):
    path = tmp_path / "special"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        path = Path(os.path.relpath(path))  # a socket's name has at most 107 characters
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    output = [] if option == "--model" else ["--output", "y"]
    place = "/dev/zero" if kind == "device" else path
    done = excir("explain", workplace / "lake", *output, option, place)
    assert "a device" in refused(done, 3 if option == "--model" else 2)


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *given: object) -> None:
        pass


@pytest.fixture
def web(workplace):
    """The address of a server with the files of the lake."""
    handler = partial(Silent, directory=workplace / "lake")
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


SECRET = "zq7verysecret"


@pytest.mark.parametrize("second", ["part-0.parquet", "part-1.parquet", "nothing.parquet"])
def test_a_list_of_signed_urls_shows_no_signature(web, tmp_path, second):
    names = [f"{web}/{name}?X-Amz-Signature={SECRET}" for name in ("part-0.parquet", second)]
    config = tmp_path / "job.yaml"
    for lake in (names, [*names, 3]):
        config.write_text(f"output: y\nlake: {lake}\n")
        for command in ("explain", "plan"):
            if command == "plan" or lake is names:
                done = excir(command, "--config", config)
                assert done.exit_code in (0, 2, 3), done.stderr
                assert SECRET not in done.stderr + done.stdout


@pytest.mark.parametrize("address", ["tcp://me:{}@127.0.0.1:1", "tls://me:{}@127.0.0.1:1", "nonsense://me:{}@host:1"])
def test_the_address_of_a_scheduler_shows_no_password(workplace, tmp_path, address):
    scheduler = address.format(SECRET)
    for more in ([], ["--cluster", tmp_path / "cluster.yaml"]):
        done = excir("explain", workplace / "lake", "--output", "y", "--scheduler", scheduler, *more)
        assert SECRET not in refused(done, done.exit_code)
        assert done.exit_code in (2, 75)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://192.0.2.1:8786", True), ("ws://192.0.2.1:8786", True), ("tls://192.0.2.1:8786", False),
        ("tcp://127.0.0.1:8786", False), ("tcp://localhost:8786", False), ("inproc://192.0.2.1/1/1", False),
    ],
)  # fmt: skip
def test_an_open_connection_to_another_host_is_warned_of(address, warned, caplog):
    warn_if_open(address)
    assert ("not encrypted" in caplog.text) == warned


def test_a_repeated_key_of_a_window_is_an_error(workplace, tmp_path):
    config = tmp_path / "audit.yaml"
    config.write_text(f"lake: {workplace}\nwindow: '{{{{ part }}}}'\noutput: y\nresults: audits\n")
    for command in (["audit", config], ["audit", "validate", config]):
        line = refused(excir(*command, "--key", "part=lake", "--key", "part=other"), 2)
        assert "--key part is given 2 times (lake, other)" in line
