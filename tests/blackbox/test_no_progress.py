"""A turn that repeats itself: the model is told, a person is asked, and the turn ends."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Recorded, Text, Tools, shell

WRONG = {"tool": "read", "arguments": {"path": "notes.tx"}}
LOOPS: dict[str, list[dict[str, Any]]] = {
    "one": [WRONG],
    "ok": [{"tool": "list", "arguments": {}}],
    "two": [WRONG, {"tool": "list", "arguments": {}}],
    "six": [{"tool": "search", "arguments": {"pattern": name}} for name in "uvwxyz"],
    "write": [
        {"tool": "write", "arguments": {"path": "a.txt", "content": "same\n"}},
        {"tool": "read", "arguments": {"path": "a.txt"}},
    ],
}


def looping(calls: list[dict[str, Any]]) -> Callable[[Recorded], Text | Tools]:
    """Return a model that makes these calls for ever."""
    said = cycle(calls)
    return lambda request: Tools([next(said)])


@pytest.mark.parametrize("shape", LOOPS)
def test_a_loop_ends_where_nobody_can_be_asked(place: Place, serve, shape: str) -> None:
    """Told once, with the evidence; after six repetitions it ends, and can be resumed."""
    calls = LOOPS[shape]
    server = serve(looping(calls))
    ran = place.run("chat", "--yes", "go")
    assert ran.returncode == 3
    assert "No progress" in ran.stderr
    assert "/queue resume" in ran.stderr
    extra = 2 if shape == "write" else len(calls)  # the first `write` is a change
    assert len(server.requests) <= extra + 6
    heard = [said for said in server.requests[-1].body["messages"] if said["role"] == "user"]
    told = [said["content"] for said in heard if said["content"].startswith("[No progress]")]
    assert len(told) == 1
    assert calls[-1]["tool"] in told[0] or calls[0]["tool"] in told[0]
    (row,) = place.data("sessions", "list")["sessions"]
    assert row["interrupted"] == 1


def test_a_person_is_asked(place: Place, serve) -> None:
    """`allow` lets it try as often again, `deny` ends the turn; `explain` names the row."""
    server = serve(looping([WRONG]))
    chat = place.chat()
    told = chat.causes("go", "no_progress", did="told")
    assert (told["kind"], told["streak"]) == ("calls", 3)
    assert "notes.tx" in told["evidence"]
    asked = chat.wait("question")
    assert (asked["tool"], asked["rule"], len(server.requests)) == ("continue", "no_progress", 5)
    chat.answer(asked, "allow")
    again = chat.wait("question")
    assert len(server.requests) == 10
    chat.answer(again, "deny")
    assert chat.wait("error", code="no_progress")["hint"]
    assert chat.wait("interrupted")["cause"] == "no_progress"
    assert chat.wait("turn_ended", status="interrupted")["reason"] == "no_progress"
    chat.causes("/queue resume", "question")
    assert chat.close() in (0, 130)
    assert "cancel-all" in place.run("routes", "explain", "--cause", "no_progress").stdout


def test_always_lets_a_turn_repeat_itself(place: Place, serve) -> None:
    """A person who wants the repetitions is asked once."""
    number = iter(range(100))

    def behave(request: Recorded) -> Text | Tools:
        return Tools([WRONG]) if next(number) < 12 else Text("Enough.")

    serve(behave)
    chat = place.chat("go")
    chat.answer(chat.wait("question"), "always")
    chat.wait("turn_ended", status="completed")
    assert len(chat.seen("question")) == 1


def test_a_told_model_that_changes_its_way_goes_on(place: Place, serve) -> None:
    """The remark is all that happens."""

    def behave(request: Recorded) -> Text | Tools:
        return Text("It is not there.") if "[No progress]" in request.prompt else Tools([WRONG])

    server = serve(behave)
    ran = place.run("chat", "--yes", "go")
    assert (ran.returncode, ran.stdout) == (0, "It is not there.\n")
    assert len(server.requests) == 4


def test_the_bounds_are_settings(place: Place, serve) -> None:
    """`[progress]` says after how many repetitions what happens."""
    server = serve(looping([WRONG]), top="[progress]\ntell = 2\nask = 2\nend = 2\nperiod = 1\n")
    assert place.run("chat", "--yes", "go").returncode == 3
    assert len(server.requests) == 2


def test_a_claim_that_contradicts_the_facts_is_doubted_once(place: Place, serve) -> None:
    """The model is told, and the person reads the facts at the end of the turn."""
    (place.folder / "a.txt").write_text("one\n")
    said = iter(
        (
            Tools([{"tool": "read", "arguments": {"path": "a.txt"}}]),
            Text("I have fixed it."),
            Text("Done."),
        )
    )
    server = serve(lambda request: next(said))
    chat = place.chat("--yes", "fix it")
    chat.wait_text("does not fit the facts")
    facts = chat.wait("turn_ended", status="completed")["facts"]
    assert (facts["text"], facts["changed"], facts["all"]) == ("No file was changed.", [], True)
    assert "[Facts] no file was changed in this turn." in server.requests[-1].prompt
    assert len(server.requests) == 3


def test_the_facts_name_files_and_a_failed_command(place: Place, serve) -> None:
    """Printed to standard error by a one-shot."""
    said = iter(
        (
            Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "x\n"}}]),
            shell("exit 3"),
            Text("It fails."),
        )
    )
    serve(lambda request: next(said))
    ran = place.run("chat", "--yes", "go")
    changed = "Changed: a.txt (new); commands may have changed more."
    assert f"{changed} The last command failed, exit 3: exit 3" in ran.stderr
