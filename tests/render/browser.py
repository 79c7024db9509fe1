"""A headless Chromium for tests, driven through its DevTools pipe: no driver program, no port, no network."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 30.0


def find() -> str | None:
    """Path of a browser, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser process; :meth:`open` gives a page with the network off."""

    def __init__(self, program: str, profile: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        # bash puts the pipes where the browser expects them; above 9, so that neither is overwritten by the other
        reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs[0], ours[1]))
        command = [
            program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run",
            "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--force-color-profile=srgb",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]  # fmt: skip
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *command],
            pass_fds=(reads, writes), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (theirs[0], ours[1], reads, writes):
            os.close(end)
        self._in, self._out = ours[0], theirs[1]
        self._buffer, self._count = b"", 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come in between are kept."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + SECONDS
        while True:
            answer = self._next(limit, method)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                found: dict[str, Any] = answer["result"]
                return found
            self.events.append(answer)

    def _next(self, limit: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, limit - time.monotonic()))
            part = os.read(self._in, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError(f"the browser gave no answer to {waiting_for} (exit code {self.process.poll()})")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, file: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> Page:
        """A page of a file, in a window of that size and a scheme of colours."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.scheme(scheme)
        page.call("Page.navigate", url=file.resolve().as_uri())
        page.wait("document.readyState === 'complete' && document.documentElement.dataset.charts === 'ready'")
        return page

    def close(self) -> None:
        self.call("Browser.close")
        self.process.wait(SECONDS)
        os.close(self._in)
        os.close(self._out)


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until an expression is true."""
        limit = time.monotonic() + SECONDS
        while not self.run(expression):
            if time.monotonic() > limit:
                raise TimeoutError(f"never true: {expression}; complaints: {self.complaints()}")
            time.sleep(0.02)

    def scheme(self, name: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of an element."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.run(f"{found}.getBoundingClientRect().toJSON()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, text: str = "") -> None:
        """One key."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "/": 191}
        same = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **same, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **same)

    def type(self, text: str) -> None:
        for character in text:
            self.call("Input.dispatchKeyEvent", type="char", text=character)

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, exceptions, and everything that was asked of the network."""
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            content, method = event["params"], event["method"]
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(content["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(content["args"])[:500])
            elif method == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
                found.append(json.dumps(content["entry"])[:500])
            elif method == "Network.requestWillBeSent":
                url = content["request"]["url"]
                if not url.startswith(("file:", "data:", "about:", "blob:")):
                    found.append(url)
        return found

    def picture(self, path: Path) -> Path:
        """A screenshot of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(made["data"]))
        return path

    def pdf(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))
        return path
