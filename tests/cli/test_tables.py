"""The machines and routes as the command line shows them, and how tables and sizes read."""

import json
import tomllib
from typing import Any

import pytest

from steersman.cli.commands.models import ProgressLine
from steersman.cli.output import show_table
from steersman.gateway.wording.formats import size_text
from steersman.gateway.wording.redaction import Redactor
from steersman.machines.catalogue import MACHINES
from steersman.machines.machine import Machine, State, Transition


def test_machines_list(command: Any) -> None:
    """The document names every machine and its states."""
    data = json.loads(command("machines", "list", "--json").out)
    assert [machine["name"] for machine in data["machines"]] == list(MACHINES)
    text = command("machines", "list").out
    assert all(state in text for machine in data["machines"] for state in machine["states"])


@pytest.mark.parametrize("name", list(MACHINES))
def test_a_machine_reads_back_from_its_toml(name: str, command: Any) -> None:
    """What is printed as TOML is the whole machine."""
    data = tomllib.loads(command("machines", "show", name, "--format", "toml").out)
    states = tuple(State(**one) for one in data.pop("state"))
    rows = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        for row in data.pop("transition")
    ]
    data["control"] = tuple(data["control"])
    read = Machine(**data, states=states, transitions=tuple(Transition(**row) for row in rows))
    assert read == MACHINES[name]


def test_a_diagram_is_the_default(command: Any) -> None:
    """A machine is shown as a Mermaid diagram."""
    assert command("machines", "show", "turn").out.startswith("stateDiagram-v2\n")


@pytest.mark.parametrize("what", ["machines", "routes"])
def test_the_shipped_tables_are_sound(what: str, command: Any) -> None:
    """Nothing is wrong with what is shipped, and the check says what it looked at."""
    done = command(what, "check")
    assert (done.code, done.err) == (0, "")
    assert all(line.endswith(": ok") for line in done.out.splitlines())


def test_routes_show_prints_every_row(command: Any) -> None:
    """Both tables are there, row by row."""
    out = command("routes", "show").out
    assert "dispositions: the first row that matches wins" in out
    assert "deliveries: the first row that matches wins" in out


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "2 kB"), (98_362_432, "98 MB"), (1_117_320_768, "1.1 GB")],
)
def test_sizes(size: int, text: str) -> None:
    """Sizes read as on a download page."""
    assert size_text(size) == text


class Terminal:
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.written = ""

    def isatty(self) -> bool:
        """Say yes."""
        return True

    def write(self, text: str) -> int:
        """Remember it."""
        self.written += text
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


ROWS = [("a", "/home/somebody/a/long/way/to/the/project"), ("日本", "x")]


def test_a_table_is_whole_where_it_is_piped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a pipe nothing is cut or coloured, however narrow the terminal, and columns line up."""
    monkeypatch.setenv("COLUMNS", "20")
    show_table(("ID", "FOLDER"), ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["ID    FOLDER", f"a     {ROWS[0][1]}", "日本  x"]


def test_a_table_fits_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the last column is cut at its begin, and NO_COLOR is heard."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    show_table(("ID", "FOLDER"), ROWS)
    lines = terminal.written.splitlines()
    assert lines == ["ID    FOLDER", "a     …long/way/to/the/project", "日本  x"]
    assert len(lines[1]) == 30
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    show_table(("ID", "FOLDER"), ROWS)
    assert terminal.written.startswith("\x1b[1mID")


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("80", "a   move all of it to zod  1 day ago  me  -        /home/somebody/a/project"),
        ("60", "a   move all of it to zod  1 day ago  me  …omebody/a/project"),
        ("50", "a   move all of it t…  1 day ago  me  …y/a/project"),
        ("42", "a   move all of …  1 day ago  …y/a/project"),
        ("20", "a   move all …  1 day ago  …y/a/project"),
    ],
)
def test_a_narrow_table_keeps_one_row_each(
    monkeypatch: pytest.MonkeyPatch, columns: str, row: str
) -> None:
    """After the last column, what is named gives way: empty columns, titles, then optional ones."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    rows = [("a", "move all of it to zod", "1 day ago", "me", "-", "/home/somebody/a/project")]
    head = ("ID", "TITLE", "AGE", "BY", "WAITING", "FOLDER")
    show_table(head, rows, ("TITLE", "WAITING"), ("BY",))
    assert terminal.written.splitlines()[1] == row


def test_progress_rewrites_its_line_on_a_terminal() -> None:
    """On a terminal there is one line, ended when it is closed."""
    stream: Any = Terminal()
    gauge = ProgressLine("it", stream)
    for done in range(0, 1001):
        gauge(done, 1000)
    gauge.close()
    assert stream.written.count("\n") == 1
    assert stream.written.endswith("it: 1 kB of 1 kB (100 %)\n")


def test_progress_is_a_few_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing can be rewritten a download takes a few lines, not thousands."""
    import sys

    gauge = ProgressLine("it", sys.stdout)
    for done in range(0, 100_001, 7):
        gauge(done, 100_000)
    gauge(100_000, 100_000)
    gauge.close()
    shares = [line.partition("(")[2] for line in capsys.readouterr().out.splitlines()]
    assert [share.partition(" %")[0] for share in shares] == [*map(str, range(0, 101, 10))]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-ant-api03-abcdefghijklmnop", "sk-…"),
        ("ghp_abcdefghijklmnopqrst0123", "ghp_…"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA…"),
        ("Authorization: Bearer abc.def-ghi_jkl==", "Authorization: Bearer …"),
        ("OPENAI_API_KEY=abcdefgh1234 next", "OPENAI_API_KEY=… next"),
        ("https://me:secret@example.org/x", "https://…@example.org/x"),
        ("redis://:secret@example.org/0", "redis://…@example.org/0"),
        ("it is p@ss-1234 and p%40ss-1234", "it is … and …"),
        ("the user postgres stays", "the user postgres stays"),
        ("sk-abc\x1b[0mdefghijklmnopq", "sk-… [removed from it: \\x1b[0m]"),
        ("a risk-taking-and-long-winded-word", "a risk-taking-and-long-winded-word"),
        ("tokens = 12", "tokens = 12"),
        ("it costs my-value-1 each", "it costs … each"),
        ("tab\tand\nline\x1b[31m stay\x9b2J", "tab\tand\nline\\x1b[31m stay\\x9b2J"),
        ("sk-\x1b[31mabcdefghijklmnop", "sk-… [removed from it: \\x1b[31m]"),
        (
            "ls \x1b]; touch PWNED\x07 sk-\x1b[31mabcdefghijklmnop",
            "ls  sk-… [removed from it: \\x1b]; touch PWNED\\x07\\x1b[31m]",
        ),
        ("half \ud800", "half ?"),
    ],
)
def test_redaction(text: str, shown: str) -> None:
    """What looks like a key, or is a secret of the environment, is covered; the rest stays."""
    environ = {
        "MY_TOKEN": "my-value-1",
        "PATH": "stay",
        "DATABASE_URL": "postgres://u:p%40ss-1234@db/x",
        "LOCAL_URL": "postgres://postgres:postgres@db/x",
    }
    assert Redactor(environ).text(text) == shown


def test_redaction_of_data() -> None:
    """Escapes in keys are visible too, nulls stay, and fields that are secrets by name are covered."""
    data = {
        "a\x1b[1m": [None, 1, float("inf"), ("x",)],
        "none": None,
        "api_key": "k",
        "api_key_env": "OPENAI_API_KEY",
        "max_tokens": 5,
    }
    assert Redactor({}).data(data) == {
        "a\\x1b[1m": [None, 1, "inf", ["x"]],
        "none": None,
        "api_key": "…",
        "api_key_env": "OPENAI_API_KEY",
        "max_tokens": 5,
    }
