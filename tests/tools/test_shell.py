"""The tools that run a process: shell and search."""

import asyncio
import os

import pytest
from tools.conftest import tool_of

from steersman.machines import protocol as m
from steersman.ports.tools.toolbox import Toolbox


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("echo hello", "ok", "hello\n[exit code 0]"),
        ("true", "ok", "(no output)\n[exit code 0]"),
        ("echo bad >&2; exit 3", "failed", "bad\n[exit code 3]"),
        ("kill -TERM $$", "failed", "(no output)\n[exit code -15: ended by signal 15]"),
        ("printf 'caf\\351'", "ok", "caf\ufffd\n[exit code 0]"),
        ("echo $TERM; cat", "ok", "dumb\n[exit code 0]"),
        ("no-such-command 2>/dev/null", "failed", "(no output)\n[exit code 127]"),
        (
            "sleep 60 & echo started",
            "ok",
            "started\n[exit code 0]\n[what it left running in the background was stopped]",
        ),
    ],
)
def test_shell(bench, command, status, text):
    """A command's output, exit code and leftover processes are reported."""
    result = bench.call("shell", command=command)

    assert (result.status, result.text) == (status, text)


def test_shell_that_kills_what_watches_over_it(bench):
    """What a command left that killed its supervisor and the spawner is ended, and named."""
    spawner = "$(cut -d' ' -f4 /proc/$PPID/stat)"
    result = bench.call("shell", command=f"sleep 60 & kill -9 {spawner} $PPID; sleep 60")

    assert (result.status, result.survivors) == ("failed", ())
    assert result.killed
    ended = ", ".join(map(str, result.killed))
    assert result.text == f"Error: its supervisor was killed; ended: {ended}"


def test_shell_place(bench):
    """A command runs in the session's folder and streams what it prints."""
    result = bench.call("shell", command="pwd; touch made")

    assert result.text.startswith(f"{bench.folder}\n")
    assert (bench.folder / "made").exists()
    assert "".join(bench.pieces) == f"{bench.folder}\n"


def test_shell_timeout(bench):
    """A command that takes too long is stopped, with what it printed so far."""
    result = bench.call("shell", command="echo before; sleep 60", timeout=0.3)

    assert (result.status, result.exit_code) == ("timed_out", -15)
    assert result.text == "before\n[timed out after 0.3 s and was stopped]"


def test_shell_long_output(bench):
    """Of a long output head and tail are reported, with the path of the whole."""
    result = bench.call("shell", command="seq 1 5000")
    whole = bench.outside / "spill" / "t1.s1.c1.txt"

    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("4999\n5000\n[exit code 0]")
    missing = result.bytes - 2 * (2000 // 3)
    assert (
        f"\n193\n19\n[… {missing} bytes left out; whole output in {whole}: "
        "`read` it with `offset` 194, or `search` it]\n" in result.text
    )
    assert whole.read_text() == "".join(f"{number}\n" for number in range(1, 5001))
    assert result.spilled == str(whole)


def test_the_middle_of_a_long_output_is_read_and_searched(bench):
    """The offset that the result names is the first line that is missing; `search` finds the others."""
    whole = bench.outside / "spill" / "t1.s1.c1.txt"
    bench.call("shell", command="seq 1 2000000")
    size = whole.stat().st_size
    assert size > 8 << 20
    found = bench.call("read", may_leave_folder=True, path=str(whole), offset=528, limit=2)
    assert found.text.startswith("528\n529\n")
    found = bench.call("search", may_leave_folder=True, path=str(whole), pattern="^1234567$")
    assert found.text == f"{str(whole)[1:]}:1234567: 1234567"


def test_shell_folder_gone(bench):
    """A session whose folder is gone says so."""
    (bench.folder / "exit").unlink()
    (bench.folder / "leak.txt").unlink()
    bench.folder.rmdir()
    assert bench.call("shell", command="true").text == (
        f"Error: cannot enter folder `{bench.folder}`: No such file or directory"
    )


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("shell", {"command": "sleep 60"}), ("search", {"pattern": r"(a+)+$"})],
)
def test_stop(bench, tool, arguments, turns):
    """A run that is stopped at any moment, also before it started, ends as `killed`."""
    (bench.folder / "trap").write_text("a" * 60 + "b")

    async def scenario(toolbox: Toolbox) -> m.ToolResult:
        run = tool_of(toolbox, tool).start(arguments, bench.context())
        for _ in range(turns):
            await asyncio.sleep(0)
        run.stop()
        run.stop()
        return await run.wait()

    result = bench.run(scenario)

    assert (result.status, result.survivors) == ("killed", ())


@pytest.mark.parametrize("tool", ["read", "write", "list", "edit"])
def test_stop_a_file_tool(bench, tool):
    """A file tool that is stopped before its work began does nothing."""

    async def scenario(toolbox: Toolbox) -> m.ToolResult:
        arguments = {
            "read": {"path": "x"},
            "list": {},
            "edit": {"path": "x", "old": "a", "new": "b"},
            "write": {"path": "x", "content": "y"},
        }[tool]
        run = tool_of(toolbox, tool).start(arguments, bench.context())
        run.stop()
        return await run.wait()

    assert bench.run(scenario).status == "killed"
    assert not (bench.folder / "x").exists()


@pytest.fixture
def library(bench):
    """A folder with things to find, and things not to look into."""
    (bench.folder / "src/deep").mkdir(parents=True)
    (bench.folder / ".git").mkdir()
    (bench.folder / "src/a.py").write_text("import os\r\nNeedle = 1\r\n")
    (bench.folder / "src/deep/b.py").write_text("x\nneedle here\n")
    (bench.folder / "notes.md").write_text("needle\n")
    (bench.folder / "new\nline").write_text("needle\n")
    (bench.folder / ".git/config").write_text("needle\n")
    (bench.folder / "binary").write_bytes(b"needle\0")
    (bench.outside / "secret.txt").write_text("needle\n")
    os.mkfifo(bench.folder / "pipe")
    return bench


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            {"pattern": "(?i)needle"},
            [
                '"new\\nline":1: needle',
                "notes.md:1: needle",
                "src/a.py:2: Needle = 1",
                "src/deep/b.py:2: needle here",
            ],
        ),
        ({"pattern": "^needle", "path": "src"}, ["src/deep/b.py:2: needle here"]),
        ({"pattern": "needle", "path": "notes.md"}, ["notes.md:1: needle"]),
        ({"pattern": "needle", "glob": "*.py"}, ["src/deep/b.py:2: needle here"]),
        ({"pattern": "needle", "glob": "src/**/*.py"}, ["src/deep/b.py:2: needle here"]),
        ({"pattern": "needle", "glob": "**/*.md"}, ["notes.md:1: needle"]),
        ({"pattern": "haystack"}, ["No match in 4 files."]),
        ({"pattern": "1$"}, ["src/a.py:2: Needle = 1"]),
        ({"pattern": "x", "path": "no"}, ["Error: `no` does not exist"]),
        ({"pattern": "("}, ["Error: `pattern` is not a regular expression"]),
        ({"pattern": "x", "path": "exit"}, ["Error: `exit` leads outside the session's folder"]),
    ],
)
def test_search(library, arguments, lines):
    """Matches come as `path:line: text`; .git, binary files, pipes and ways out are left aside."""
    found = library.call("search", **arguments).text.splitlines()

    assert [line[: len(wanted)] for line, wanted in zip(found, lines, strict=True)] == lines


def test_search_outside(library):
    """With permission a folder outside is searched, and paths are absolute."""
    found = library.call("search", may_leave_folder=True, pattern="needle", path="exit").text

    assert found == f"{str(library.outside)[1:]}/secret.txt:1: needle"


def test_search_many(bench):
    """Many matches and long lines are cut, and said to be."""
    (bench.folder / "many").write_text("x\n" * 300)
    (bench.folder / "a").write_text("x" * 1000)
    found = bench.call("search", pattern="x").text.splitlines()

    assert found[0] == f"a:1: {'x' * 300} […]"
    assert found[-1] == "[200 matches shown; there are more, narrow the pattern or the path]"
