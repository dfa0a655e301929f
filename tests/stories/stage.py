"""Where a story happens: a home, a folder of real files, a model, and chats that are opened in it."""

import re
import sqlite3
from pathlib import Path
from typing import Any

from support.driver import COMMAND, Chat, Place
from support.model_server import ModelServer, Recorded

from .agent import MARK, Agent, Message
from .faces import Face, Job, Lines, LinesJob, Screen, ScreenJob
from .terminal import Reel, Terminal

__all__ = ["Stage"]

FILE = """import * as yup from "yup";

export const schema{n:02} = yup.object({{ name: yup.string().required() }});
"""


class Stage:
    """`kind` is `json` or `screen`; what is opened with a reel is recorded."""

    def __init__(self, root: Path, kind: str, reel: Reel | None = None) -> None:
        self.place = Place(root)
        self.agent = Agent(pace=0.004 if reel else 0.0)
        self.server = ModelServer(self.agent)
        self.kind = kind
        self._reel = reel
        self.terminals: list[Terminal] = []
        self.place.configure(self.server.base_url)
        if kind == "screen":
            self.place.environ |= {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}

    def files(self, count: int = 50) -> list[Path]:
        """Write this many small source files into the folder."""
        made = [self.place.folder / f"schema{n:02}.ts" for n in range(1, count + 1)]
        for n, path in enumerate(made, 1):
            path.write_text(FILE.format(n=n), "utf-8")
        return made

    def opens(self, *arguments: str) -> Face:
        """Open a chat that may use its tools without asking."""
        if self.kind == "json":
            return Lines(self.place.chat("--yes", *arguments))
        return Screen(self._terminal("chat", "--yes", *arguments))

    def begins(self, *arguments: str) -> Job:
        """Run a workflow."""
        if self.kind == "json":
            chat = Chat(self.place, (*COMMAND, "run", "--json", *arguments))
            self.place.chats.append(chat)
            return LinesJob(chat)
        return ScreenJob(self._terminal("run", *arguments))

    def _terminal(self, *arguments: str) -> Terminal:
        command = (*COMMAND, *arguments)
        if self._reel is not None:
            shown = " ".join(("steersman", *arguments))
            self._reel.add(f"\x1b[0m\r\x1b[J$ {shown}\r\n")
        terminal = Terminal(command, self.place.folder, self.place.environ, reel=self._reel)
        self.terminals.append(terminal)
        return terminal

    def runs(self, *arguments: str) -> str:
        """Run a command in another terminal to its end, and return what it prints."""
        ran = self.place.run(*arguments)
        assert ran.returncode == 0, ran.stderr
        if self._reel is not None:
            shown = f"$ steersman {' '.join(arguments)}\n{ran.stdout}".replace("\n", "\r\n")
            self._reel.add(f"\x1b[0m\r\x1b[J{shown}")
        return ran.stdout

    def close(self) -> None:
        """End everything that is left, and say what a program complained about."""
        for terminal in self.terminals:
            terminal.abandon()
        self.place.close()
        self.server.close()
        self.agent.close()
        said = [chat.diagnostics for chat in self.place.chats]
        said += ["\n".join(one.rows) for one in self.terminals]
        assert "Traceback" not in "\n".join(said), said

    # What is looked at afterwards -------------------------------------------------------------------

    def requests(self, wish: str = "") -> list[Recorded]:
        """Return what the model was asked, or what it was asked while `wish` was the newest."""
        return [one for one in self.server.requests if wish in one.prompt]

    def stored(self) -> dict[str, Any]:
        """Return what the journal says of the session."""
        return self.place.stored()

    def times_done(self) -> list[int]:
        """Return how often each file was rewritten, by its own marks."""
        paths = sorted(self.place.folder.glob("schema*.ts"))
        return [len(re.findall(MARK, path.read_text("utf-8"))) for path in paths]

    def check_append_only(self) -> None:
        """Nothing that the model had seen was changed: each request only adds to the one before."""
        seen: list[Message] = []
        fixed = None
        for request in self.server.requests:
            messages = request.body["messages"]
            assert messages[: len(seen)] == seen
            seen = messages
            assert request.body["tools"] == (fixed := fixed or request.body["tools"])

    def passes(self, minutes: float) -> None:
        """Let it be so much later: everything that is stored was so much earlier. Nothing runs."""
        seconds = minutes * 60
        home = sqlite3.connect(self.place.home / "state" / "journal.db")
        with home:
            home.execute("UPDATE entries SET time = time - ?", (seconds,))
            home.execute("DELETE FROM snapshots")  # they hold times; the entries give them again
            for key in ("created", "updated"):
                earlier = f"json_extract(row, '$.{key}') - ?"
                change = f"json_replace(row, '$.{key}', {earlier})"
                home.execute(f"UPDATE sessions SET row = {change}", (seconds,))
            home.execute("UPDATE sessions SET updated = updated - ?", (seconds,))
        home.close()
