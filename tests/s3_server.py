"""An object store on this machine's loopback: moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

moto_server = pytest.importorskip("moto.server")


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server, with credentials for it in the environment. Servers of one process share their buckets."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            patch.delenv(name, raising=False)
        server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            yield server.get_host_and_port()[1]
        finally:
            server.stop()
