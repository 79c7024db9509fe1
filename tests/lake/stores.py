"""Servers on loopback: one that counts what is fetched through it, and a plain one for the web."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Counter:
    """A server in front of another one."""

    port: int = 0
    fetched: list[tuple[str, int, int]] = field(default_factory=list)
    """path, first byte and number of bytes of every range that was asked for"""
    fault: tuple[int, str] | None = None
    """status and S3 error code to answer with, in place of what the other server says"""

    def bytes_of_columns(self, files: dict[str, int]) -> int:
        """Bytes of all ranges that are not a footer; ``files`` says where the columns of each file end."""
        return sum(size for path, first, size in self.fetched if first < files[path.rsplit("/", 1)[-1]])


@contextmanager
def serving(handler: Any) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def counting(target: int) -> Iterator[Counter]:
    """A proxy to a port of this machine."""
    counter = Counter()

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if counter.fault is not None:
                status, code = counter.fault
                text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told to</Message></Error>".encode()
                self.answer(status, {"Content-Type": "application/xml"}, text)
                return
            connection = http.client.HTTPConnection("127.0.0.1", target)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            data = answer.read()
            asked = re.fullmatch(r"bytes=(\d+)-\d+", self.headers.get("Range") or "")
            if asked and self.command == "GET":
                counter.fetched.append((self.path, int(asked[1]), len(data)))
            self.answer(answer.status, dict(answer.getheaders()), data)
            connection.close()

        def answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
            self.send_response(status)
            size = headers.pop("Content-Length", str(len(data))) if self.command == "HEAD" else str(len(data))
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", size)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = forward  # noqa: N815

        def log_message(self, *arguments: object) -> None: ...

    with serving(Proxy) as counter.port:
        yield counter


@contextmanager
def web(folder: Path, ranges: bool) -> Iterator[str]:
    """The address of a web server for a folder, which may or may not know ranges (Python's own does not)."""

    class Web(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
            path = Path(self.translate_path(self.path))
            if not ranges or asked is None or not path.is_file():
                super().do_GET()
                return
            whole = path.read_bytes()
            part = whole[int(asked[1]) : int(asked[2]) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {asked[1]}-{int(asked[1]) + len(part) - 1}/{len(whole)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)

        def end_headers(self) -> None:
            if ranges:
                self.send_header("Accept-Ranges", "bytes")
            super().end_headers()

        def log_message(self, *arguments: object) -> None: ...

    with serving(partial(Web, directory=str(folder))) as port:
        yield f"http://127.0.0.1:{port}"
