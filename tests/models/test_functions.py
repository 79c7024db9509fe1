"""A function is called itself on the threads of this machine; other processes get a copy."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dask
import numpy as np
import oracle
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from excir_dask import PerProcess, explain
from excir_dask.errors import ModelError, UsageError
from excir_dask.models.load import load_model

ROWS = 1200


class Counter:
    """Counts the rows that it scores."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, frame: pd.DataFrame) -> pd.Series:
        self.sizes.append(len(frame))
        return 2 * frame["a"] - frame["b"]


class Guarded:
    """Holds a lock, as a function does that takes turns."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls = 0

    def __call__(self, frame: pd.DataFrame) -> pd.Series:
        with self.lock:
            self.calls += 1
        return 2 * frame["a"] - frame["b"]


class Session:
    """A connection to a scoring service that stays open from call to call."""

    def __init__(self, port: int) -> None:
        self.connection = HTTPConnection("127.0.0.1", port)
        self.connection.connect()
        self.lock = threading.Lock()

    def __call__(self, frame: pd.DataFrame) -> list[float]:
        with self.lock:
            self.connection.request("POST", "/", json.dumps(frame[["a", "b"]].to_numpy().tolist()))
            return json.loads(self.connection.getresponse().read())


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps([2 * a - b for a, b in rows]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = pd.DataFrame(np.random.default_rng(0).standard_normal((ROWS, 3)), columns=list("abc"))
    return rows.assign(pred=2 * rows["a"] - rows["b"])


@pytest.fixture(scope="module")
def lake(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return oracle.write_lake(tmp_path_factory.mktemp("functions") / "lake", frame.drop(columns="pred"), 4)


@pytest.fixture
def session() -> Iterator[Session]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found = Session(server.server_port)
        yield found
        found.connection.close()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", protocol="tcp://"
        ) as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found


def same_scores(found: Any, frame: pd.DataFrame) -> None:
    expected = explain(frame, output="pred").features.set_index("feature")["cir"]
    np.testing.assert_allclose(found.features.set_index("feature")["cir"][expected.index], expected, atol=1e-12)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", "processes"])
def test_a_counter_counts_every_row_once_on_this_machine(lake, frame, scheduler):
    counter = Counter()
    with dask.config.set(scheduler=scheduler):
        same_scores(explain(lake, model=counter), frame)
    assert sum(counter.sizes) == ROWS


def test_a_frame_is_scored_by_the_function_itself(frame):
    counter = Counter()
    same_scores(explain(frame.drop(columns="pred"), model=counter), frame)
    assert sum(counter.sizes) == ROWS


def test_functions_with_equal_pickles_are_not_mixed_up(lake):
    first, second = Counter(), Counter()
    for counter in (first, second):
        explain(lake, model=counter)
    assert sum(first.sizes) == sum(second.sizes) == ROWS


def test_a_function_may_hold_a_lock_on_this_machine(lake, frame):
    guarded = Guarded()
    same_scores(explain(lake, model=guarded), frame)
    assert guarded.calls >= 1


def test_a_function_may_hold_an_open_session_on_this_machine(lake, frame, session):
    same_scores(explain(lake, model=session), frame)


def test_a_larger_sample_calls_the_same_function(lake):
    guarded = Guarded()
    explain(lake, model=guarded, fraction="auto", k=1)
    assert guarded.calls >= 1


def test_a_cluster_gets_a_copy(lake, frame, client):
    counter = Counter()
    same_scores(explain(lake, model=counter, scheduler=client), frame)
    assert counter.sizes == []


def test_a_cluster_refuses_what_cannot_be_pickled_and_says_what_to_do(lake, client):
    guarded = Guarded()
    with pytest.raises(ModelError, match=r"Guarded cannot be pickled.*create locks, sessions and open files inside"):
        explain(lake, model=guarded, scheduler=client)
    assert guarded.calls == 0


def test_a_model_that_is_sent_leaves_the_function_behind(frame):
    counter = Counter()
    model = load_model(counter)
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model
    assert copy.function is None
    copy.score(frame)
    assert counter.sizes == []
    model.score(frame)
    assert counter.sizes == [ROWS]


def test_what_cannot_be_pickled_cannot_be_sent():
    with pytest.raises(ModelError, match="cannot be pickled, so it cannot be sent to workers"):
        pickle.dumps(load_model(Guarded()))


def test_a_function_that_nobody_can_recognise_has_no_run_id_and_no_checkpoint(lake, tmp_path):
    first = explain(lake, model=Guarded(), out=tmp_path / "out")
    assert first.provenance.run_id is None
    assert first.provenance.model.sha256 is None
    with pytest.raises(UsageError, match="exists already"):
        explain(lake, model=Guarded(), out=tmp_path / "out")
    again = explain(lake, model=Guarded(), out=tmp_path / "out", overwrite=True)
    assert again.to_json() == first.to_json()
    with pytest.raises(UsageError, match="no later run can recognise it; leave checkpoint out"):
        explain(lake, model=Guarded(), checkpoint=tmp_path / "states")


class Opened:
    """Opens what cannot be pickled, and writes a line about it."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self) -> Guarded:
        with self.log.open("a") as lines:
            lines.write("made\n")
        return Guarded()


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_process_makes_a_model_of_its_own_once(lake, frame, client, tmp_path, where):
    model = PerProcess(Opened(tmp_path / "log"))
    same_scores(explain(lake, model=model, scheduler=client if where == "cluster" else None), frame)
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_factory_that_cannot_be_sent_or_makes_no_function_is_refused(lake):
    lock = threading.Lock()
    with pytest.raises(ModelError, match="PerProcess cannot be pickled"):
        explain(lake, model=PerProcess(lambda: lock))
    with pytest.raises(ModelError, match="PerProcess made int; it must return a function"):
        explain(lake, model=PerProcess(lambda: 7))
    with pytest.raises(ModelError, match="could not be made here: ZeroDivisionError"):
        explain(lake, model=PerProcess(lambda: 1 / 0))


def test_a_function_gets_the_text_that_model_columns_names(frame):
    towns = frame.drop(columns="pred").assign(town=np.where(frame["a"] > 0, "Oslo", "Rome"))

    def in_oslo(rows: pd.DataFrame) -> pd.Series:
        return (rows["town"] == "Oslo").astype(float)

    with pytest.raises(ModelError, match="text included, in model_columns"):
        explain(towns, model=in_oslo)
    assert explain(towns, model=in_oslo, model_columns=["town"], features=["a"]).top(1)["cir"][0] > 0.9
