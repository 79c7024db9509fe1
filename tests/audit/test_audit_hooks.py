"""Hooks: what they are sent, how long they may take, and that no message holds their address."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from excir_dask.audit.config import Hooks
from excir_dask.audit.hooks import call_hooks

SECRET = "s3cr3tpw"
TOKEN = "T0K3N"
PAYLOAD = {"status": "ok", "run": "r"}


class Server(ThreadingHTTPServer):
    """Answers by path, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.received: list[tuple[str, str, str | None, bytes]] = []
        self.over = Event()


class Answer(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.command, self.path, self.headers["Authorization"], body))
        if self.path.startswith("/drip"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.over.wait(0.05):
                self.wfile.write(b"X-Drip: 1\r\n")
        code = {"/broken": 500, "/moved": 302}.get(self.path, 204)
        self.send_response(code, f"at {self.path}")
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.received.append((self.command, self.path, None, b""))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.over.set()
        made.shutdown()
        thread.join()


def notify(webhook: str, timeout: float = 10.0) -> dict:
    (found,) = call_hooks(Hooks(when=("ok",), webhook=webhook, timeout=timeout), PAYLOAD)
    assert not [word for word in (SECRET, TOKEN, "127.0.0.1") if word in json.dumps(found)]
    return found


def test_a_password_in_the_address_is_sent_as_a_header(server):
    found = notify(f"http://user:{SECRET}%40@127.0.0.1:{server.server_port}/hook")
    assert (found["ok"], found["detail"]) == (True, "answered 204 No Content")
    ((_, path, header, body),) = server.received
    assert path == "/hook"
    assert header == "Basic " + base64.b64encode(f"user:{SECRET}@".encode()).decode()
    assert json.loads(body) == PAYLOAD


@pytest.mark.parametrize(
    ("address", "detail"),
    [
        (f"http://user:{SECRET}@127.0.0.1:9/{TOKEN}", "ConnectionRefusedError: Connection refused"),
        (f"http://127.0.0.1:9/hooks/{TOKEN} /x", "InvalidURL"),
        (f"http://user:{SECRET}@127.0.0.1:port{TOKEN}/", "InvalidURL"),
        (f"http://[{TOKEN}/", "ValueError"),
        (f"http://127.0.0.1:9/ü{TOKEN}", "UnicodeEncodeError"),
        (f"$EXCIR_NOT_SET/{TOKEN}", "not be set"),
    ],
)
def test_what_is_said_of_a_failure_never_holds_the_address(address, detail):
    found = notify(address)
    assert not found["ok"]
    assert detail in found["detail"]


@pytest.mark.parametrize(
    ("path", "detail"), [("broken", "answered 500 Internal Server Error"), ("moved", "answered 302 Found; redirects")]
)
def test_an_answer_that_is_no_success_is_a_failure_with_its_number(server, path, detail):
    found = notify(f"http://127.0.0.1:{server.server_port}/{path}")
    assert not found["ok"]
    assert found["detail"].startswith(detail)
    assert [method for method, *_ in server.received] == ["POST"]


def test_a_server_that_drips_does_not_hold_an_audit_up(server):
    began = time.monotonic()
    found = notify(f"http://127.0.0.1:{server.server_port}/drip", timeout=0.3)
    assert (found["ok"], found["detail"]) == (False, "no answer within 0.3 s")
    assert time.monotonic() - began < 5
