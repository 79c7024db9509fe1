"""What is written appears whole or not at all, with the permissions of any new file."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs

from excir_dask.common.atomic import TEMPORARY, new_folder, unwritable_parent, write_file, write_stored

OTHER = fs.PyFileSystem(fs.FSSpecHandler(LocalFileSystem()))
"""a filesystem with folders that is not pyarrow's own, as a server's would be"""

Writer = Callable[[Path, bytes], None]
WRITERS: dict[str, Writer] = {
    "file": write_file,
    "local": lambda path, content: write_stored(fs.LocalFileSystem(), str(path), content),
    "other": lambda path, content: write_stored(OTHER, str(path), content),
}


@pytest.fixture(params=list(WRITERS))
def write(request) -> Writer:
    return WRITERS[request.param]


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_or_replaced(write, tmp_path):
    for content in (b"one", b"two"):
        write(tmp_path / "f", content)
        assert (tmp_path / "f").read_bytes() == content
    assert names(tmp_path) == ["f"]


def test_permissions_follow_the_umask(write, tmp_path, umask):
    write(tmp_path / "f", b"x")
    assert mode(tmp_path / "f") == 0o666 & ~umask
    with new_folder(tmp_path / "d") as made:
        (made / "inside").write_bytes(b"x")
    assert mode(tmp_path / "d") == 0o777 & ~umask


def test_the_umask_is_never_set_because_other_threads_have_it_too(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("os.umask was called"))
    write_file(tmp_path / "f", b"x")
    with new_folder(tmp_path / "d"):
        pass


def test_a_file_that_cannot_be_renamed_leaves_nothing(tmp_path):
    (tmp_path / "f" / "mine").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "f", b"x")
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["mine"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_after_a_full_disk_the_old_file_is_there_and_nothing_else(tmp_path, monkeypatch):
    write_file(tmp_path / "f", b"old")
    opened = Path.open

    def onto_a_full_disk(path, *given):
        path.symlink_to("/dev/full")
        return opened(path, "wb")

    monkeypatch.setattr(Path, "open", onto_a_full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "f", b"new")
    monkeypatch.undo()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_the_folder_of_a_file_must_exist(write, tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "no" / "f", b"x")
    assert names(tmp_path) == []


def test_names_may_be_as_long_as_the_filesystem_allows(write, tmp_path):
    for name in ("x" * 255, "温" * 85):
        write(tmp_path / name, b"x")
    with new_folder(tmp_path / ("y" * 255)) as made:
        (made / "f").write_bytes(b"x")
    assert names(tmp_path / ("y" * 255)) == ["f"]


def test_a_reader_sees_one_of_the_files_that_threads_write_at_once(write, tmp_path):
    contents = [bytes([letter]) * 200_000 for letter in b"abcdefgh"]
    write(tmp_path / "f", contents[0])
    with ThreadPoolExecutor(8) as threads:
        writing = [threads.submit(write, tmp_path / "f", content) for content in contents * 4]
        while not all(one.done() for one in writing):
            assert (tmp_path / "f").read_bytes() in contents
        assert [one.exception() for one in writing] == [None] * 32
    assert names(tmp_path) == ["f"]


KILLED = """
import os, signal, sys
from pathlib import Path
from excir_dask.common import atomic
target = Path(sys.argv[1])
if sys.argv[2] == "file":
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    atomic.write_file(target, b"new")
else:
    with atomic.new_folder(target, ["f"]) as made:
        (made / "f").write_bytes(b"new")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_killed_process_leaves_the_target_and_a_name_that_tells(tmp_path, kind):
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    old = target if kind == "file" else target / "f"
    old.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), kind], check=False)
    assert done.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"old"
    left, kept = names(tmp_path)
    assert kept == "target"
    assert left.startswith(f"{TEMPORARY}target-")


def test_the_nearest_path_above_decides_whether_something_can_be_made(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    assert unwritable_parent(tmp_path / "a" / "b") is None
    assert unwritable_parent(tmp_path / "f") is None
    assert unwritable_parent(tmp_path / "f" / "a" / "b") == tmp_path / "f"
    assert unwritable_parent(Path("/")) is None


def test_a_folder_appears_when_it_is_complete(tmp_path):
    target = tmp_path / "above" / "d"
    with new_folder(target) as made:
        (made / "f").write_bytes(b"x")
        assert not target.exists()
        assert made.parent == target.parent, "a rename within one filesystem"
    assert names(target) == ["f"]
    assert names(target.parent) == ["d"]


@pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
def test_after_an_error_a_folder_is_what_it_was(tmp_path, error):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "f").write_bytes(b"old")

    def fill(target: Path) -> None:
        with new_folder(target, ["f"]) as made:
            (made / "f").write_bytes(b"new")
            raise error

    for name in ("old", "new"):
        with pytest.raises(type(error)):
            fill(tmp_path / name)
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old" / "f").read_bytes() == b"old"


def test_of_an_old_folder_only_the_named_files_are_replaced(tmp_path):
    target = tmp_path / "d"
    target.mkdir()
    for name in ("f", "gone", "mine"):
        (target / name).write_bytes(b"old")
    with new_folder(target, ["f", "gone"]) as made:
        (made / "f").write_bytes(b"new")
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"f": b"new", "mine": b"old"}
    assert names(tmp_path) == ["d"]


def test_a_folder_that_cannot_be_renamed_leaves_the_old_one_in_its_place(tmp_path):
    target = tmp_path / "d"
    target.mkdir()
    (target / "f").write_bytes(b"old")
    with pytest.raises(FileNotFoundError), new_folder(target, ["f"]) as made:
        made.rmdir()
    assert (target / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["d"]


def test_without_names_an_empty_folder_is_filled_and_a_full_one_refused(tmp_path):
    target = tmp_path / "d"
    target.mkdir()
    with new_folder(target) as made:
        (made / "f").write_bytes(b"x")
    with pytest.raises(OSError, match="not empty"), new_folder(target) as made:
        (made / "f").write_bytes(b"y")
    assert (target / "f").read_bytes() == b"x"
    assert names(tmp_path) == ["d"]


def test_the_folder_behind_a_link_stays_as_it_is(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"old")
    (tmp_path / "d").symlink_to(tmp_path / "real")
    with new_folder(tmp_path / "d", ["f"]) as made:
        (made / "f").write_bytes(b"new")
    assert (tmp_path / "real" / "f").read_bytes() == b"old"
    assert (tmp_path / "d" / "f").read_bytes() == b"new"
    assert names(tmp_path) == ["d", "real"]
