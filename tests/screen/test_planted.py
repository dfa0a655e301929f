"""Escapes planted in every text of every event: no interface passes one on to a terminal."""

import io
import json
import re
import subprocess
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from screen.test_terminal import is_lit
from stories.agent import call, says, uses
from stories.stage import Stage
from stories.terminal import Terminal
from support.driver import COMMAND, WAIT, Gate
from support.model_server import Text
from support.patience import seconds

from steersman.cli.output import document, show
from steersman.cli.plain import PlainInterface
from steersman.cli.runs.prompt import RunScreen
from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.screen import Screen
from steersman.cli.streams import Printer
from steersman.gateway.events import contract

PLANTED = (
    "\x1b[31;8mCSI \x1b]52;c;Q0FO\x07OSC \x1b]8;;http://x\x1b\\LINK \x1bPq\x1b\\DCS \x9b31mC1 "
    "\x00\x08\r\x7fCONTROL \u202e\u2066BIDI \u200b\ufeff\u2060WIDTH \U000e0041TAG \x1bcRESET"
)
ACTS = re.compile(
    "[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    r"|\x1b(?!\[(?:[0-47]|[39][1-6]|90)(?:;(?:[0-47]|[39][1-6]))*m)"
)
MOMENTS = {"time", "last_active", "since"}


def members(kind: Any) -> list[Any]:
    """Return the classes of a union of unions."""
    return [
        found
        for argument in typing.get_args(kind)
        for found in ([argument] if typing.is_typeddict(argument) else members(argument))
    ]


KINDS = members(contract.Event)


def planted(kind: Any, name: str = "") -> Any:
    """Return a value of a type whose every text is planted; of a choice of words the first."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        return {key: planted(hint, key) for key, hint in hints.items() if key != "parent"}
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return planted(next(argument for argument in arguments if argument is not type(None)), name)
    if origin in (list, tuple, Sequence):
        return [planted(arguments[0])]
    if kind is Any or origin in (dict, Mapping):
        return {PLANTED: PLANTED}
    if name in MOMENTS:
        return "2026-11-23T05:00:00.000Z"
    return {str: PLANTED, int: 1, float: 1.0, bool: True}[kind]


class Pane:
    """A canvas that keeps what is printed."""

    columns, lines = 100, 40

    def __init__(self) -> None:
        self.text = ""

    def print(self, rows: list[str]) -> None:
        """Keep rows."""
        self.text += "".join(f"{row}\n" for row in rows)

    def changed(self) -> None:
        """There is nothing to draw."""

    def changes_in(self, seconds: float) -> None:
        """Nor later."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_interface_passes_an_escape_on(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the screen, nor plain text, nor a run's rows hold anything that a terminal obeys."""
    event = planted(kind)
    stream, pane = io.StringIO(), Pane()
    printer = Printer(stream)
    screen = Screen(pane, Appearance())  # type: ignore[arg-type]
    run = RunScreen(printer.write, can_utf8=True)
    for hear in (PlainInterface(printer.write, printer.write).hear, screen.hear, run.hear):
        hear(event)
        hear(event)
    printer.write(run.picture())
    printer.close()
    below = "".join(piece[1] for piece in (*screen.above(), *screen.below()))
    show(document(event))
    for text in (stream.getvalue(), pane.text, below, capsys.readouterr().out):
        assert not ACTS.search(text), ascii(text)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_programs_read_what_was_there(kind: Any) -> None:
    """As JSON, a line holds the same data, and nothing that a terminal obeys."""
    event, stream = planted(kind), io.StringIO()
    printer = Printer(stream)
    printer.write(document(event, None) + "\n")
    printer.close()
    assert json.loads(stream.getvalue()) == event
    assert not ACTS.search(stream.getvalue())


# In the installed program, whose terminal is a real one ---------------------------------------------

NAME = "\x1b[35;8mA\x1b]52;c;Q0FO\x07B\x1bPq\x1b\\C\x9b31mD\u202eE\u200bF\U000e0041G\x1bcH"
"""What a file's name can hold."""
TEXT = f"{NAME} \x1b]0;ti tle\x07I \x1b]8;;http://x\x1b\\J \x1b[35mK"
"""Streamed, its second OSC comes in two pieces."""
HIDING = "true \x1b]; touch PLANTED ; : \x07"
"""A command whose second half a terminal hides."""
FOREIGN = re.compile(
    r"\x1b[\]PX^_\\c]|\x1b\[(?:35|3[0-7];8)[;m]"
    "|[\x00\x07\x80-\x9f\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""What this program never sends to a terminal itself."""
TITLE = re.compile(r"\x1b\]2;project - (?:idle|working|question)\x07")
"""The title that the chat gives to its terminal."""
OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
VISIBLE = re.compile(r"(?:\\x1b|\^\[)\[35;8mA(?:\\x1b|\^\[)]52;c;Q0FO(?:\\x07|\^G)B")
"""How the beginning of `NAME` reads where nothing of it may vanish."""
QUOTED = re.compile(r"\[35;8mA\\(?:x1b|u001b|U0000001b|e)\]52;c;Q0FO", re.IGNORECASE)
"""The same, in a message or as TOML."""


def quoted(text: str) -> str:
    """Write a string of TOML, in ASCII."""
    plain = {chr(code) for code in range(0x20, 0x7F)} - {'"', "\\"}
    signs = (sign if sign in plain else f"\\U{ord(sign):08x}" for sign in text)
    return f'"{"".join(signs)}"'


def looks(rows: str) -> str:
    """Return rows as one line without blanks, wherever it was broken."""
    return "".join(rows.split())


class Sight:
    """Terminals of any command on one stage; whatever they are sent is looked at."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def opens(self, *arguments: str, **environ: str) -> Terminal:
        """Start a command in a wide terminal."""
        return self._stage.starts(*arguments, size=(200, 50), **environ)

    def runs(self, *arguments: str, **environ: str) -> str:
        """Run a command to its end in a terminal; return what it shows."""
        terminal = self.opens(*arguments, **environ)
        terminal.ended()
        self.check(terminal)
        return said(terminal)

    def pipes(self, *arguments: str, **environ: str) -> None:
        """Run a command to its end, where no terminal is."""
        place = self._stage.place
        pipe, environment = subprocess.PIPE, place.environ | environ
        ran = subprocess.Popen(
            (*COMMAND, *arguments),
            cwd=place.folder,
            env=environment,
            text=True,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        for text in ran.communicate(timeout=seconds(WAIT)):
            assert "\x1b" not in text, (arguments, ascii(text))
            assert not ACTS.search(text), (arguments, ascii(text))
            assert "Traceback" not in text

    def check(self, terminal: Terminal) -> None:
        """Nothing foreign was sent to a terminal."""
        sent = TITLE.sub("", bytes(terminal.sent).decode(errors="replace"))
        found = FOREIGN.search(sent)
        assert found is None, ascii(sent[max(0, found.start() - 200) : found.end() + 50])


@pytest.fixture
def sight(stage: Stage) -> Sight:
    """Where everything that is shown is looked at."""
    return Sight(stage)


def plant(stage: Stage) -> None:
    """Let the project have a file, and the model answers and calls, that hold planted text."""
    (stage.place.folder / NAME).write_text(f"found {TEXT}\n")
    printing = "printf 'out\\033]52;c;Q0FO\\007put\\n\\033[35mpink\\n'"
    calls = (
        call("shell", command=f"{printing} # {TEXT}"),
        call(TEXT, path=TEXT),
        call("list", path="."),
        call("search", pattern="found"),
        call("read", path=NAME),
        call("read", path=f"none{NAME}"),
        call("write", path=f"new{NAME}", content=TEXT),
        call("edit", path=NAME, old="found", new=f"lost {TEXT}"),
    )
    stage.agent.when("ask", uses(call("shell", command=f"{HIDING}{NAME}")), says("Asked."))
    stage.agent.when(
        "work", uses(*calls, saying=f"I begin {TEXT}"), Text(f"The end {TEXT}", pause=0.05)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_chat_shows_it_and_obeys_none_of_it(stage: Stage, sight: Sight, term: str) -> None:
    """Questions, calls, results, answers and commands, at the prompt and in plain lines."""
    plant(stage)
    terminal = sight.opens("chat", TERM=term)
    terminal.shows("everything is saved")
    terminal.types("ask")
    terminal.waits(lambda: r"true\x1b];touchPLANTED;:\x07\x1b[35;8mA" in said(terminal))
    terminal.waits(lambda: term == "dumb" or is_lit(terminal))
    terminal.presses("n\r")
    terminal.shows("Asked.")
    terminal.presses("/exit\r")
    assert terminal.ended() == 0
    sight.check(terminal)

    terminal = sight.opens("chat", "--yes", "--continue", TERM=term)
    terminal.shows("everything is saved")
    terminal.says("work", "The end ABC31mDEFGH")
    assert VISIBLE.search(said(terminal))  # a tool's name and arguments
    for command, shown in (
        ("/show", "read"),
        ("/show t2.s1.c1", "command:"),
        ("/diff t2", "+lost"),
        ("/revert --to t2 --dry-run", "Would revert 2 files"),
        ("/history", "user: work"),
    ):
        start = len(terminal.sent)
        terminal.presses(f"{command}\r")
        terminal.shows(shown)
        if command.startswith(("/show", "/diff")):
            terminal.waits(lambda start=start: VISIBLE.search(said(terminal, start)))
    if term != "dumb":
        terminal.presses("\x0f" * 9)
        terminal.shows("Nothing more to unfold.")
    terminal.presses("/exit\r")
    assert terminal.ended() == 0
    sight.check(terminal)


def said(terminal: Terminal, start: int = 0) -> str:
    """Return what a terminal was sent, from a byte on, as one line without this program's codes."""
    sent = bytes(terminal.sent[start:]).decode(errors="replace")
    return looks(OWN.sub("", sent))


@pytest.mark.nightly
def test_a_terminal_that_attaches_shows_it(stage: Stage, sight: Sight) -> None:
    """Messages of others, in the line and the menu as well; files' names; `--watch` of all this."""
    plant(stage)
    gate = Gate(stage.place.folder)
    stage.agent.when("wait", uses(call("shell", command=f"{gate.command} # {TEXT}")), says("Over."))
    chat = stage.place.chat("--yes")
    chat.send({"command": "rename", "arguments": {"called": f"name{TEXT}"}})
    chat.wait("result", name="rename")
    chat.send("wait")
    gate.wait()
    chat.send({"text": f"later {TEXT}", "as": "queue", "user": f"ann{NAME}"})
    chat.wait("accepted", **{"as": "queue"})
    for form, begin in (("tree", r"later\x1b[35;8mA"), ("toml", 'id="'), ("json", '"id":"')):
        watching = sight.opens("inspect", "--watch", "--format", form)
        watching.waits(lambda shown=watching, begin=begin: begin in said(shown))
        watching.presses("\x03")
        assert watching.ended() == 130
        sight.check(watching)
    ann = sight.opens("attach", "--user", "ann")
    ann.has_bar("working")
    ann.presses("\x1b[A")
    ann.has_line(r"later \x1b[35;8mA\x1b]52;c;Q0FO\x07B")
    ann.presses("\x1b")
    ann.waits(lambda: not any("Editing" in row for row in ann.screen.display))
    ann.presses("@")
    ann.has(r" @\x1b[35;8mA\x1b]52")
    ann.presses("\x1b[B\t")
    ann.has_line(r"@\x1b[35;8mA\x1b]52;c;Q0FO\x07B")
    ann.presses("\x15")
    ann.types("/queue")
    ann.has_line("")
    ann.shows(r"from ann\x1b[35;8mA")
    ann.presses("#")
    ann.has(r"pending: later \x1b[35;8mA")
    ann.presses("\x15")
    ann.types("/inspect")
    ann.has_line("")
    ann.shows("last transitions")
    gate.open()
    ann.shows("Over.")
    ann.presses("/exit\r")
    assert ann.ended() == 0
    sight.check(ann)
    gate.close()


READING = (
    *(("sessions", verb) for verb in ("list", "show", "export")),
    ("sessions", "search", "work"),
    ("sessions", "revert", "last", "--dry-run"),
    ("queue", "list"),
    ("inspect",),
    *(("inspect", "--format", form) for form in ("toml", "json", "mermaid", "svg")),
    ("inspect", "--events"),
    ("inspect", "--events", "--format", "json"),
    ("inspect", "--diff", "1", "20"),
    ("why", "last", "1"),
    ("why", "last", "2"),
    ("routes", "replay", "last"),
    ("goal", "status"),
    ("agents", "list"),
    ("permissions", "list"),
    ("doctor",),
    ("sessions", "import", "whole.json", "--new"),
    ("sessions", "import", NAME),
    ("queue", "import", "queue.toml"),
    *((*words, TEXT) for words in (("routes", "explain"), ("permissions", "explain", "shell"))),
    *((*words, NAME) for words in (("run",), ("workflow", "check"), ("sessions", "show"))),
    *((*words, NAME) for words in (("chat", "hi", "--agent"), ("routes", "show"), (), ("queue",))),
)


@pytest.mark.nightly
def test_the_commands_show_it(stage: Stage, sight: Sight) -> None:
    """What is stored, imported or given on the command line; as JSON it is the same data."""
    plant(stage)
    place = stage.place
    gate = Gate(place.folder)
    stage.agent.when("wait", uses(call("shell", command=gate.command)))
    chat = place.chat("--yes")
    chat.send("work", {"command": "rename", "arguments": {"called": f"name{TEXT}"}})
    chat.wait("turn_ended")
    chat.send({"command": "goal", "arguments": {"text": TEXT, "gates": [f"sh -c '{NAME}'"]}})
    chat.wait("result", name="goal")
    chat.send("wait")
    gate.wait()
    chat.send({"text": f"later {TEXT}", "as": "queue", "user": f"ann{NAME}"})
    chat.wait("accepted", **{"as": "queue"})
    chat.ask("/queue export queue.toml")
    chat.kill()
    gate.close()
    place.run("sessions", "export", "last", "whole.json", "--whole")
    assert json.dumps(NAME)[1:-1] in (place.folder / "whole.json").read_text()
    for arguments in READING:
        shown = sight.runs(*arguments)
        if NAME in arguments or TEXT in arguments:
            assert VISIBLE.search(shown), (arguments, shown)
    for arguments in (
        ("sessions", "list"),
        ("queue", "list"),
        ("inspect",),
        ("routes", "explain", TEXT),
    ):
        sight.pipes(*arguments)
    listed = json.loads(place.run("queue", "list", "--json").stdout)
    assert [item["text"] for item in listed["items"]][-1:] == [f"later {TEXT}"]


WORKFLOW = """
[workflow]
name = "planted"
description = {text}
output = "{{{{ steps.print.output }}}}"
[workflow.vars]
value = {text}
[[step]]
id = "print"
run = ["printf", "%s", "{{{{ vars.value }}}}"]
[[step]]
id = "ask"
needs = ["print"]
ask = {{ text = "May I {{{{ steps.print.output }}}}?" }}
[[step]]
id = "fail"
needs = ["ask"]
run = ["sh", "-c", 'echo "$0" >&2; exit 3', "{{{{ vars.value }}}}"]
"""


@pytest.mark.nightly
def test_a_run_shows_it(stage: Stage, sight: Sight) -> None:
    """Its plan, its question, its steps and what they fail with, and what `sessions` says of it."""
    file = stage.place.folder / "planted.toml"
    file.write_text(WORKFLOW.format(text=quoted(TEXT)))
    assert VISIBLE.search(sight.runs("run", file.name, "--dry-run"))
    assert "ok" in sight.runs("workflow", "check", file.name)
    terminal = sight.opens("run", file.name)
    terminal.waits(lambda: r"MayI\x1b[35;8mA\x1b]52;c;Q0FO\x07B" in said(terminal))
    terminal.presses("yes\r")
    assert terminal.ended() == 1
    sight.check(terminal)
    sight.pipes("run", file.name)
    for arguments in (
        ("sessions", "list"),
        ("inspect",),
        ("inspect", "--events"),
        ("workflow", "list"),
    ):
        sight.runs(*arguments)
    file.write_text(f'[workflow]\nname = "a"\n[[step]]\nid = {quoted(NAME)}\nrun = ["true"]\n')
    assert QUOTED.search(sight.runs("workflow", "check", file.name))


FAULTS = (
    "busy_input_mode = {}",
    "{} = 1",
    "[agents.{}]\nmodel = 1",
    "[agents.a]\nmodel = {}",
    "[models.m]\nprovider = {}",
    "[[route]]\ncause = {}",
    "[[hooks]]\non = {}\nrun = ['true']",
)


@pytest.mark.nightly
def test_mistakes_in_settings_quote_it(stage: Stage, sight: Sight) -> None:
    """The message of each has the bad value whole, and so has what `trust` asks about."""
    place = stage.place
    file = place.home / "bad.toml"
    for fault in FAULTS:
        file.write_text(fault.format(quoted(NAME)))
        for command in (("config", "check"), ("chat", "hi")):
            shown = sight.runs(*command, STEERSMAN_CONFIG=str(file))
            assert QUOTED.search(shown), (fault, shown)
    (place.folder / "steersman.toml").write_text(
        f"[[hooks]]\non = 'turn_ended'\nrun = ['sh', '-c', {quoted(NAME)}]\n"
    )
    asking = sight.opens("trust")
    asking.shows("Trust it?")
    asking.presses("n\r")
    assert asking.ended() == 1
    sight.check(asking)
    assert QUOTED.search(said(asking))


def test_what_gates_and_hooks_print_is_shown(stage: Stage, sight: Sight) -> None:
    """A gate's output is in the goal's status; a hook that cannot start is named in a notice."""
    printing = ["sh", "-c", "printf '\\033]52;c;Q0FO\\007no\\033[35mpink\\n'; exit 1"]
    hook = f"[[hooks]]\non = 'turn_ended'\nrun = [{quoted(NAME)}]\n"
    gates = f"[goals]\nmax_turns = 1\nbackoff = 0.0\n{hook}"
    stage.place.configure(stage.server.base_url, rest=gates)
    stage.agent.when("", says("Done."))
    terminal = sight.opens("chat", "--yes")
    terminal.has_bar("idle")
    terminal.presses(f"/goal --gate \"{printing[0]} {printing[1]} '{printing[2]}'\" be done\r")
    terminal.has_bar("goal paused")
    terminal.types("/goal status")
    terminal.has_line("")
    terminal.shows("gate")
    terminal.presses("/exit\r")
    terminal.ended()
    sight.check(terminal)
    sight.runs("goal", "status")
    sight.runs("inspect", "--events")
