"""Where a story happens: a home, a folder of real files, a model, and chats that are opened in it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.driver import COMMAND, Gate, Place
from support.model_server import ModelServer, Recorded
from support.served import Followed, Served

from .agent import MARK, Agent, Message
from .faces import (
    Attached,
    Face,
    Http,
    Job,
    Lines,
    LinesJob,
    Plain,
    Screen,
    ScreenJob,
    ServedScreen,
)
from .terminal import Reel, Terminal

__all__ = ["Stage"]

FILE = """import * as yup from "yup";

export const schema{n:02} = yup.object({{ name: yup.string().required() }});
"""


USER = "user"
"""Who speaks, by whatever name an interface has for them: the name that one without names says."""


class Stage:
    """`kind` is the interface: one of `faces`. What is opened with a reel is recorded."""

    def __init__(self, root: Path, kind: str, reel: Reel | None = None) -> None:
        self.place = Place(root)
        self.agent = Agent(pace=0.004 if reel else 0.0)
        self.server = ModelServer(self.agent)
        self.kind = kind
        self._reel = reel
        self._token = ""
        self._gates: list[Gate] = []
        self.terminals: list[Terminal] = []
        mode = 'permission_mode = "all"' if kind == "http" else ""  # instead of --yes
        self.place.configure(self.server.base_url, top=mode)
        self.place.environ["LOGNAME"] = USER
        if kind in ("plain", "screen", "served"):
            self.place.environ |= {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}

    def files(self, count: int = 50) -> list[Path]:
        """Write this many small source files into the folder."""
        made = [self.place.folder / f"schema{n:02}.ts" for n in range(1, count + 1)]
        for n, path in enumerate(made, 1):
            path.write_text(FILE.format(n=n), "utf-8")
        return made

    @property
    def gate(self) -> Gate:
        """Where commands of the story stop."""
        if not self._gates:
            self._gates.append(Gate(self.place.folder))
        return self._gates[0]

    def opens(self, *arguments: str) -> Face:
        """Open a chat that may use its tools without asking."""
        match self.kind:
            case "json":
                return Lines(self.place.chat("--yes", *arguments))
            case "attached":
                owner = self.place.chat("--yes", *arguments)
                return Attached(owner, self.place.attach(owner.session))
            case "http":
                return self._asks(self._serves(), "--continue" in arguments)
            case "plain":
                return Plain(self.place.start("chat", "--plain", "--yes", *arguments, text=False))
            case "served":
                web = self._serves()
                return ServedScreen(web, self._terminal("chat", "--yes", *arguments))
            case _:
                return Screen(self._terminal("chat", "--yes", *arguments))

    def _serves(self) -> Served:
        web = Served(self.place)
        self._token = web.token = self._token or web.pair(USER)
        return web

    def _asks(self, web: Served, is_resumed: bool) -> Http:
        """Take up the last session, or begin one, and follow what comes from here on."""
        if not is_resumed:
            return Http(web, Followed(web, web.begin()))
        taken = web.ask("POST", "sessions", {"resume": "last"}).data
        return Http(web, Followed(web, taken["id"]))

    def begins(self, *arguments: str) -> Job:
        """Run a workflow."""
        if self.kind == "json":
            return LinesJob(self.place.job(*arguments))
        return ScreenJob(self._terminal("run", *arguments))

    def _terminal(self, *arguments: str) -> Terminal:
        if self._reel is not None:
            shown = " ".join(("steersman", *arguments))
            self._reel.add(f"\x1b[0m\r\x1b[J$ {shown}\r\n")
        return self.starts(*arguments, size=(100, 30))

    def starts(
        self,
        *arguments: str,
        program: Sequence[str] = COMMAND,
        size: tuple[int, int] = (80, 24),
        **environ: str,
    ) -> Terminal:
        """Start a command in a terminal of its own; `environ` are more variables."""
        environment = self.place.environ | environ
        command = (*program, *arguments)
        terminal = Terminal(command, self.place.folder, environment, size, self._reel)
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
        for program in self.place.programs:
            with program:
                pass  # its pipes are closed
        self.server.close()
        self.agent.close()
        for gate in self._gates:
            gate.close()
        said = [chat.diagnostics for chat in self.place.chats]
        said += ["\n".join(terminal.rows) for terminal in self.terminals]
        assert "Traceback" not in "\n".join(said), said

    # What is looked at afterwards -------------------------------------------------------------------

    def requests(self, wish: str = "") -> list[Recorded]:
        """Return what the model was asked, or what it was asked while `wish` was the newest."""
        return [request for request in self.server.requests if wish in request.prompt]

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
        keys = ("created", "updated")
        rows = ", ".join(f"'$.{key}', json_extract(row, '$.{key}') - {seconds}" for key in keys)
        self.place.alter(
            f"UPDATE entries SET time = time - {seconds}",
            "DELETE FROM snapshots",  # they hold times; the entries give them again
            f"UPDATE sessions SET row = json_replace(row, {rows}), updated = updated - {seconds}",
        )
