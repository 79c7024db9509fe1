"""Lake and results in an object store: moto's server on this machine's loopback."""

import pytest
from click.testing import CliRunner
from days import FIRST
from s3_server import s3_server

from excir_dask.audit import history
from excir_dask.audit.baseline import set_baseline
from excir_dask.audit.config import read_config
from excir_dask.audit.lock import LockedError, locked
from excir_dask.audit.run import audit
from excir_dask.audit.store import open_store, split_run
from excir_dask.cli import excir
from excir_dask.errors import LakeError

SECRET = "hush-hush-4711"
ENDPOINT = "client_kwargs.endpoint_url=http://127.0.0.1:"
pytestmark = pytest.mark.usefixtures("synchronous", "without_bokeh")


@pytest.fixture
def port():
    """Of a server with one empty bucket."""
    from pyarrow import fs

    with s3_server() as found:
        bucket = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{found}", scheme="http", allow_bucket_creation=True)
        bucket.create_dir("audited")
        yield found


@pytest.mark.parametrize("by", ["pyarrow", "fsspec"])
def test_a_bucket_that_does_not_exist_is_named(port, by):
    if by == "pyarrow":
        place, options = f"?endpoint_override=127.0.0.1:{port}&scheme=http", None
    else:
        pytest.importorskip("s3fs")
        place, options = "", {"client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"}, "key": "a", "secret": "b"}
    open_store(f"s3://audited/audits{place}", options).check_writable()
    with pytest.raises(LakeError, match="'no-such-bucket'"):
        open_store(f"s3://no-such-bucket/audits{place}", options).check_writable()


@pytest.mark.parametrize("by", ["pyarrow", "fsspec"])
def test_an_audit_keeps_its_results_in_an_object_store(plant, port, by):
    from pyarrow import fs

    bucket = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http")
    fs.copy_files(
        str(plant / "lake"), "audited/lake", source_filesystem=fs.LocalFileSystem(), destination_filesystem=bucket
    )
    query = f"?endpoint_override=127.0.0.1:{port}&scheme=http" if by == "pyarrow" else ""
    path = plant / "audit.yaml"
    text = path.read_text().replace("lake: lake", f"lake: s3://audited/lake{query}")
    text = text.replace("results: audits", f"results: s3://audited/audits-{by}{query}") + "baseline: production\n"
    if by == "fsspec":
        pytest.importorskip("s3fs")
        keys = f"key: someone, secret: {SECRET}, client_kwargs: {{endpoint_url: 'http://127.0.0.1:{port}'}}"
        text += f"explain: {{storage_options: {{{keys}}}}}\n"
    path.write_text(text)
    config = read_config(path)
    first = audit(config, FIRST, baseline=False).about
    store = open_store(config.results, config.results_options)
    assert split_run(first["folder"]) == (config.results, first["run"])
    set_baseline(store, "production", first["run"])
    second = audit(config, FIRST.replace(day=2))
    assert (second.about["baseline"], second.status) == (first["run"], "ok")
    assert store.runs() == sorted([first["run"], second.about["run"]])
    assert len(history.trend(store, "rpm")) == 2
    assert store.entries("locks", "plant") == []
    files = [info.path for info in bucket.get_file_info(fs.FileSelector(f"audited/audits-{by}", recursive=True))]
    contents = [bucket.open_input_stream(path).readall() for path in files if "." in path.rsplit("/", 1)[-1]]
    assert len(contents) > 15
    assert not [content for content in contents if SECRET.encode() in content]
    where = second.about["folder"]
    given = [
        f"--storage-option={key}"
        for key in (f"key=someone secret={SECRET} {ENDPOINT}{port}".split() if by == "fsspec" else [])
    ]
    done = CliRunner().invoke(excir, ["report", where, "--out", str(plant / "run.html"), *given])
    assert (done.exit_code, done.stdout) == (0, f"{plant / 'run.html'}\n"), done.stderr
    assert "Passed" in (plant / "run.html").read_text()
    assert store.get("runs", second.about["run"], "report.html") is None  # it was made without bokeh
    done = CliRunner().invoke(excir, ["report", where, *given])
    assert done.exit_code == 0, done.stderr
    assert SECRET not in done.output
    assert store.get("runs", second.about["run"], "report.html") == (plant / "run.html").read_bytes()
    another = open_store(config.results, config.results_options)
    with locked(another, "plant"), pytest.raises(LockedError), locked(store, "plant"):
        pass
