"""A headless Chromium, driven by chromedriver over HTTP (W3C WebDriver), with nothing but Python's own library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_DRIVER = "chromedriver"
_START_S, _PAGE_S = 30.0, 60.0


def missing() -> str:
    """Which program is not installed; empty when both are."""
    if _chromium() is None:
        return f"Chromium ({', '.join(_CHROMIUM)})"
    return "" if shutil.which(_DRIVER) else f"Chromium's driver ({_DRIVER})"


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, _CHROMIUM)), None)


class Browser:
    """One window. Its pages are light, and their times are UTC."""

    def __init__(self, session: str) -> None:
        """Of a session's address."""
        self._session = session

    def open(self, address: str, *, width: int, height: int, zoom: float = 1.0) -> None:
        """Go to a page in a window of so many pixels; `zoom` below 1 leaves a page more room in the same width."""
        seen = {
            "width": round(width / zoom),
            "height": round(height / zoom),
            "deviceScaleFactor": zoom,
            "mobile": False,
        }
        self._chromium("Emulation.setDeviceMetricsOverride", seen)
        light = {"name": "prefers-color-scheme", "value": "light"}
        self._chromium("Emulation.setEmulatedMedia", {"features": [light]})
        self._chromium("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        _ask("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str) -> Any:
        """What a script returns in the page."""
        return _ask("POST", f"{self._session}/execute/sync", {"script": script, "args": []})

    def wait(self, condition: str, what: str) -> None:
        """Wait until a JavaScript expression is true in the page.

        Raises:
            TimeoutError: when it is not true in time.
        """
        deadline = time.monotonic() + _PAGE_S
        while not self.run(f"return Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the page does not show {what} after {_PAGE_S:g} s: {self.run('return location.href')}"
                )
            time.sleep(0.2)

    def picture(self, *, top: float = 0.0, bottom: float, width: int) -> bytes:
        """A PNG of the page from `top` to `bottom`, in the page's own pixels, once nothing fades in any more."""
        moving = "one.playState === 'running' && one.effect.getComputedTiming().endTime !== Infinity"
        self.wait(f"!document.getAnimations().some(one => {moving})", "its end of animations")
        clip = {"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1}
        found = self._chromium("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})
        return base64.b64decode(found["data"])

    def _chromium(self, command: str, parameters: dict[str, Any]) -> Any:
        return _ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    driver = subprocess.Popen([_DRIVER, f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL)
    try:
        server = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + _START_S
        while not _ready(server):
            if driver.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{_DRIVER} did not start")
            time.sleep(0.1)
        arguments = ["--headless=new", "--hide-scrollbars", "--disable-gpu", "--force-color-profile=srgb"]
        if os.geteuid() == 0:  # Chromium's sandbox does not start for root
            arguments.append("--no-sandbox")
        options = {"binary": _chromium(), "args": arguments}
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        session = f"{server}/session/{_ask('POST', f'{server}/session', wanted)['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _ask("DELETE", session)
    finally:
        driver.terminate()
        driver.wait()


def _ready(server: str) -> bool:
    try:
        return bool(_ask("GET", f"{server}/status")["ready"])
    except OSError:
        return False


def _ask(method: str, address: str, body: dict[str, Any] | None = None) -> Any:
    """The answer's value; no proxy is asked."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as reply:
            return json.load(reply)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{_DRIVER}: {json.load(error)['value']['message']}") from None
