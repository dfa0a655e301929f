"""The first run: the notice about the agent, and about a folder before it is trusted."""

import shutil
from contextlib import closing

import pytest
from blackbox.terminal import Terminal
from support.driver import COMMAND, Gate, Place
from support.model_server import Text, Tools

PROJECT = """\
busy_input_mode = "queue"
[[hooks]]
on = "turn_ended"
run = ["touch", "hooked"]
[permissions]
rules = [{ tool = "shell", do = "allow" }]
[tools]
sandbox = "off"
"""


ALLOWED = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'


def test_the_first_chat_says_what_it_is_and_the_next_is_brief(place: Place, serve) -> None:
    """Model, folder, what it may, sandbox, settings and state, each with what changes it: once."""
    serve(Text("Hello."))
    for is_first in (True, False):
        with closing(Terminal(place, [*COMMAND, "chat"])) as terminal:
            terminal.wait("/help lists the commands")
            shown = terminal.shown()
            assert ("Welcome. Type a task and press Enter" in shown) is is_first
            assert ("This is shown once" in shown) is is_first
            assert shown.count("(test-model at ") == 1
            words = " ".join(shown.split())
            assert "may read here; asks to write here, run commands and look outside" in words
            for name in ("model", "folder", "sandbox", "settings", "kept in"):
                assert (f"  {name:<8}  " in shown) is is_first
            assert ("; /permissions shows the rules" in words) is not is_first
    ran = place.run("chat", "hello")
    assert "may read here" not in ran.stdout + ran.stderr


def test_a_chat_says_what_else_works_in_the_folder(
    place: Place, at_keyboard, serve, gate: Gate
) -> None:
    """Two agents in the same files is worth a line; an idle session is not."""
    serve(Tools([gate.call]), Text("Done."), rest=ALLOWED)
    busy, idle = place.at_work(gate, "count the stars"), place.chat()
    terminal = at_keyboard("chat")
    beside = f"Session {busy.session} works in this folder, too: `steersman attach {busy.session}`."
    terminal.wait(beside.split(":")[0])
    assert beside in " ".join(terminal.shown().split())
    assert idle.session not in terminal.shown()


def test_the_first_chat_says_that_its_model_is_not_here(at_keyboard) -> None:
    """Without a model of one's own, what is missing is said before anything is typed."""
    terminal = at_keyboard("--model", "qwen2.5-coder-0.5b")
    terminal.wait("/help lists the commands")
    assert "qwen2.5-coder-0.5b cannot answer yet (" in " ".join(terminal.shown().split())


@pytest.mark.parametrize(
    ("options", "may"),
    [
        (
            ["--mode", "plan", "--yes"],
            "mode plan: may read here and look outside; may not write here or run commands",
        ),
        (["--mode", "edits"], "mode edits: may read here and write here; asks to run commands and"),
        (["--yes"], "may read here, write here, run commands and look outside"),
    ],
)
def test_the_greeting_says_what_the_mode_allows(at_keyboard, serve, options, may: str) -> None:
    """It goes by the mode and `--yes`, too, not by the rules alone."""
    serve(Text("Hello."))
    terminal = at_keyboard("chat", *options)
    terminal.wait("/help lists the commands")
    assert may in " ".join(terminal.shown().split())


@pytest.mark.nightly
def test_trust_is_shown_asked_listed_and_taken_back(place: Place, serve) -> None:
    """Nothing of a project's file that needs trust holds before a yes, nor after `--forget`."""
    serve(Text("Hello."))
    file = place.folder / "steersman.toml"
    file.write_text(PROJECT)
    hooked = place.folder / "hooked"

    def rule() -> str:
        ran = place.run("permissions", "explain", "ls")
        return "allow" if "shell ls: allow" in ran.stdout else "ask"

    assert rule() == "ask"
    place.run("chat", "hello")
    assert not hooked.exists()
    for answer, verdict in (("n\r", "Not trusted."), ("y\r", "is trusted as it is now")):
        with closing(Terminal(place, [*COMMAND, "trust"])) as terminal:
            terminal.wait("Trust it? [y/N]")
            for line in (
                '"touch", "hooked"',
                'tool = "shell", do = "allow"',
                'tools.sandbox = "off"',
            ):
                assert line in terminal.shown()
            terminal.type(answer)
            terminal.wait(verdict)
    assert rule() == "allow"
    place.run("chat", "hello")
    assert hooked.exists()
    assert place.run("trust", "--list").stdout == f"{place.folder}\n"
    file.write_text(PROJECT + "# changed\n")
    assert rule() == "ask"
    assert "changed since: not in force" in place.run("trust", "--list").stdout
    assert place.run("trust", "--yes").returncode == 0
    assert rule() == "allow"
    assert place.run("trust", "--forget").returncode == 0
    assert rule() == "ask"
    again = place.run("trust", "--forget")
    assert (again.returncode, "was not trusted" in again.stderr) == (2, True)


def test_a_session_taken_up_elsewhere_keeps_its_own_folders_rules(place: Place, serve) -> None:
    """`--resume` from a trusted folder does not bring that folder's rules along."""
    serve(Text("Hello."))
    place.run("chat", "hello")
    other = place.folder.parent / "other"
    other.mkdir()
    (other / "steersman.toml").write_text(PROJECT)
    assert place.run("trust", "--yes", str(other)).returncode == 0
    chat = place.chat("--resume", "last", "--cwd", str(other))
    explained = chat.ask("/permissions explain shell ls")
    assert explained["data"]["do"] == "ask"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_doctor_tells_of_the_sandbox(place: Place, serve) -> None:
    """`doctor` says whether commands run in a sandbox."""
    serve(Text("Hello."))
    assert "sandbox" in place.run("doctor").stdout
