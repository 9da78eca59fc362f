"""Drive a headless Chromium by its devtools protocol, through pipes."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
# The browser reads commands from descriptor 3 and writes answers to 4.
_AS_3_AND_4 = """
import os, sys
given = [os.dup(int(number)) for number in sys.argv[1:3]]
for copy, number in zip(given, (3, 4)):
    os.dup2(copy, number)
    os.set_inheritable(number, True)
os.execv(sys.argv[3], sys.argv[3:])
"""
SECONDS = 60.0  # for one command: a machine that is busy starts it slowly


class Browser:
    """One page in a browser of its own; it sees no network.

    Attributes:
        errors: what was thrown, or written as an error to the console.
    """

    def __init__(self, profile: Path, width: int = 1440, height: int = 900, dark: bool = False):
        assert CHROMIUM is not None
        read, self._out = os.pipe()
        self._in, write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={width},{height}"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run"]
        command = [sys.executable, "-c", _AS_3_AND_4, str(read), str(write), CHROMIUM, *flags]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, pass_fds=(read, write), stdout=quiet, stderr=quiet
        )
        os.close(read), os.close(write)
        self._numbers, self._rest, self.errors = itertools.count(1), b"", list[str]()
        self._session, self._loaded = "", False
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        found = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        self.prefer("dark" if dark else "light")

    def prefer(self, scheme: str) -> None:
        """Let the system's colours be light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", features=features)

    def open(
        self, page: Path, ready: str = "document.documentElement?.dataset.ready === 'yes'"
    ) -> None:
        """Load a page and wait until its program says that it is ready."""
        self._loaded = False
        self._ask("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._note(self._next())
        self.wait(ready)

    def wait(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + SECONDS
        while self.run(condition) is not True:
            assert time.monotonic() < end, f"never so: {condition}: {self.errors}"
            time.sleep(0.05)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send an event of the mouse: mousePressed, mouseReleased, mouseMoved, mouseWheel."""
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button."""
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self) -> bytes:
        """A screenshot as PNG."""
        return base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in), os.close(self._out)

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, event: dict[str, Any]) -> None:
        """Keep what went wrong in the page."""
        given = event.get("params", {})
        self._loaded = self._loaded or event.get("method") == "Page.loadEventFired"
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(given["exceptionDetails"].get("exception", given)))
        if event.get("method") == "Runtime.consoleAPICalled" and given["type"] == "error":
            self.errors.append(str(given["args"]))
        if event.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"])
