"""A real Chromium without a window, driven over WebDriver with the standard library alone.

https://www.w3.org/TR/webdriver2/ and, for the size of the screen and dark mode, the commands of
https://chromedevtools.github.io/devtools-protocol/. Nothing here sleeps for its own sake: what is waited
for is a condition in the page.
"""

import base64
import http.client
import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from support.patience import seconds
from support.until import until

__all__ = ["AXE", "ENTER", "MISSING", "Browser", "Driver"]

WAIT = 30.0
AXE = (Path(__file__).parent / "axe.min.js").read_text("utf-8")
"""https://github.com/dequelabs/axe-core: finds what people with assistive technology could not use."""
MISSING = [
    name
    for name, known in {
        "chromium": ("chromium", "chromium-browser", "google-chrome"),
        "chromedriver": ("chromedriver",),
    }.items()
    if not any(map(shutil.which, known))
]
ENTER = "\ue007"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_LISTENS = re.compile(rb"started successfully on port (\d+)")  # what chromedriver prints


class Driver:
    """A running chromedriver, which starts browsers."""

    def __init__(self) -> None:
        program = shutil.which("chromedriver") or "chromedriver"
        self._program = subprocess.Popen(
            [program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._program.stdout is not None
        listens = (_LISTENS.search(line) for line in self._program.stdout)
        found = next(filter(None, listens), None)
        assert found, "chromedriver has ended"
        self.port = int(found[1])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a command and return its value. Raises `AssertionError` if it fails."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds(60))
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
            assert answer.status == 200, value
            return value
        finally:
            connection.close()

    def close(self) -> None:
        """End it, and every browser with it."""
        self._program.terminate()
        try:
            self._program.wait(seconds(10))
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()
        if self._program.stdout is not None:
            self._program.stdout.close()


class Browser:
    """One browser with a profile of its own; `width` and `height` in CSS pixels."""

    def __init__(self, driver: Driver, width: int = 1440, height: int = 900) -> None:
        self._driver = driver
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        options = {"args": [*arguments, "--hide-scrollbars", f"--window-size={width},{height}"]}
        logs = {"browser": "ALL"}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs}
        opened = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{opened['sessionId']}"
        self.resize(width, height)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a command of this browser."""
        return self._driver.call(method, f"{self._session}{path}", body)

    def close(self) -> None:
        """Close it."""
        self.call("DELETE", "")

    # What it looks like -----------------------------------------------------------------------------

    def _devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width: int, height: int) -> None:
        """Give the page another size; a narrow one is a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self._devtools("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)

    def prefer(self, scheme: str) -> None:
        """Let the page know that a person prefers `dark` or `light`."""
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", features=wanted)

    def allow_notices(self, origin: str) -> None:
        """Let the pages of an origin show notices, as a person would."""
        self._devtools("Browser.grantPermissions", origin=origin, permissions=["notifications"])

    def push(self, origin: str, data: str) -> None:
        """Have the worker of an origin take a message, as from the push service."""
        self._devtools("ServiceWorker.enable")
        self._devtools(
            "ServiceWorker.deliverPushMessage", origin=origin, registrationId="0", data=data
        )

    def shoot(self, path: Path) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    # What is there ----------------------------------------------------------------------------------

    def go(self, address: str) -> None:
        """Open an address."""
        self.call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript, outside of the page's own policy, and return what it returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, condition: str, *arguments: Any, timeout: float = WAIT) -> Any:
        """Wait until a JavaScript expression is true, and return its value."""

        def seen() -> str:
            text = self.run("return document.body.innerText")
            return f"{condition} {arguments}\n{text}\n{self.complaints()}"

        return until(lambda: self.run(f"return ({condition})", *arguments), seen, quiet=timeout)

    def wait_text(self, text: str, place: str = "body", timeout: float = WAIT) -> None:
        """Wait until a text is somewhere below an element."""
        has = "document.querySelector(arguments[0])?.textContent.includes(arguments[1])"
        self.wait(has, place, text, timeout=timeout)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds, in order."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def complaints(self) -> list[str]:
        """Return what scripts and the policy had to complain about since the last time."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        severe = [line for line in log if line["level"] == "SEVERE"]
        return [line["message"] for line in severe if line["source"] != "network"]

    # What a person does -----------------------------------------------------------------------------

    def _use(self, selector: str, command: str, body: Any) -> None:
        """Send a command to the first element that a selector finds, once it can be seen.

        The page may draw it again between the two: then nothing was done, and it is found again.
        """
        deadline = time.monotonic() + seconds(WAIT)
        while True:
            self.wait("document.querySelector(arguments[0])?.checkVisibility()", selector)
            try:
                found = self.call("POST", "/element", {"using": "css selector", "value": selector})
                self.call("POST", f"/element/{found[_ELEMENT]}/{command}", body)
                return
            except AssertionError as error:
                is_gone = any(word in str(error) for word in ("stale element", "no such element"))
                if not is_gone or time.monotonic() > deadline:
                    raise

    def click(self, selector: str) -> None:
        """Click the first element that a selector finds, once it can be seen."""
        self._use(selector, "click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        self._use(selector, "value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys, one after another, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def focus(self) -> str:
        """Return what the element in focus is called."""
        script = "const one = document.activeElement; return one.ariaLabel || one.textContent"
        return str(self.run(script))

    def tab_to(self, label: str, most: int = 80) -> None:
        """Press Tab until the element in focus is called so, or begins so."""
        for _ in range(most):
            self.press("\ue004")
            if self.focus().startswith(label):
                return
        raise AssertionError(f"Tab does not lead to `{label}`, but to `{self.focus()}` at last")

    def drag(self, source: str, target: str, kind: str = "touch") -> None:
        """Drag the middle of one element a little past the middle of another."""
        middle = (
            "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [box.left + box.width / 2, box.top + box.height / 2]"
        )
        (x, y), (_, end) = self.run(middle, source), self.run(middle, target)
        past = end + (6 if end > y else -6)
        ways = [(x, y + (past - y) * part / 8) for part in range(1, 9)]
        moves = [
            {"type": "pointerMove", "duration": 10, "x": round(left), "y": round(top)}
            for left, top in ways
        ]
        actions = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            *moves,
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": "p", "parameters": {"pointerType": kind}}
        self.call("POST", "/actions", {"actions": [{**pointer, "actions": actions}]})

    # Assistive technology ---------------------------------------------------------------------------

    def barriers(self) -> list[str]:
        """Return what axe finds that keeps people out: its serious and critical rules."""
        self.run(AXE + "; window.axe = axe")
        script = (
            "const done = arguments[0];"
            "axe.run(document, { resultTypes: ['violations'] }).then("
            "(found) => done(found.violations), (error) => done([{ impact: 'critical',"
            "id: String(error), nodes: [] }]))"
        )
        found = self.call("POST", "/execute/async", {"script": script, "args": []})
        return [
            f"{rule['id']}: {[node['html'][:200] for node in rule['nodes'][:4]]}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]
