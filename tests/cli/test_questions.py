"""The text of a question."""

from pathlib import Path
from typing import Any

import pytest

from steersman.cli.question import SHOWN, Questions, answer_keys, answering, asked
from steersman.gateway.typed_text import TextReader
from steersman.gateway.wording.terminal import exposed
from steersman.machines.classification import Keywords

TEXTS = TextReader(Keywords())


def test_a_long_call_says_what_is_not_shown() -> None:
    """A question says how much of a long command it leaves out."""
    command = "echo " + "x" * SHOWN + "; rm -rf ."
    text = asked({"kind": "permission", "tool": "shell", "arguments": {"command": command}})
    assert f" … {len(command) - SHOWN} more characters" in text
    assert "more characters" not in asked(
        {"kind": "permission", "tool": "shell", "arguments": {"command": "ls"}}
    )


def test_a_question_says_why_although_a_rule_seems_to_allow() -> None:
    """The reason stands on a line of its own, with nothing hidden in it."""
    about = {"kind": "permission", "tool": "shell", "arguments": {"command": "ls"}}
    why = "`git*` does not cover it: `\x1b[8m-O`"
    assert asked({**about, "why": why}).splitlines()[1] == exposed(why)
    assert len(asked({**about, "why": None}).splitlines()) == 2


def question(tool: str = "shell", **changes: Any) -> Any:
    """A question about a call."""
    arguments = {"command": "git status -s"} if tool == "shell" else {"path": "src/a.py"}
    known = {"id": "q-t1.s1.c1", "session": "s", "kind": "permission", "tool": tool}
    options = ["allow", "always", "deny"]
    return {"type": "question", **known, "arguments": arguments, "options": options} | changes


def test_keys_and_words_answer_alike(tmp_path: Path) -> None:
    """A letter, a word and a key mean the same width; what says more is a message."""
    here = question("edit", outside=False)
    keys = answer_keys(here, tmp_path)
    assert [key.key for key in keys] == ["y", "a", "e", "n"]
    once, always, every, no = (key.answer for key in keys)
    for text, answer in (("y", once), ("Yes, please.", once), ("always", always), ("e", every)):
        assert answering(TEXTS, here, text, keys) == answer
    assert answering(TEXTS, here, "no", keys) == no
    assert (always.choice, always.reason) == ("always", "src/*")
    assert (every.reason, every.tools) == ("*", ("write",))
    refused = answering(TEXTS, here, "n use make", keys)
    assert refused is not None
    assert (refused.choice, refused.reason) == ("deny", "use make")
    assert answering(TEXTS, here, "no, use make", keys) == refused
    assert answering(TEXTS, here, "no, stop", keys) is None
    for text in ("e as in echo", "yes but slowly", "allow it all", "x"):
        assert answering(TEXTS, here, text, keys) is None
    assert [key.key for key in answer_keys(question(outside=False), tmp_path)] == ["y", "a", "n"]
    outside = question("edit", outside=True, arguments={"path": "/etc/a"})
    assert [key.key for key in answer_keys(outside, tmp_path)] == ["y", "a", "n"]


def test_a_steps_question_has_its_options(tmp_path: Path) -> None:
    """A number, a name or an initial answers it; without options any text that stops nothing."""
    about = {"kind": "ask", "tool": "ask", "step": "sure", "default": "no"}
    here: Any = {**question(), **about, "arguments": {"text": "Go on?"}, "options": ["yes", "no"]}
    keys = answer_keys(here, tmp_path)
    assert [(key.key, key.words) for key in keys] == [("1", "yes"), ("2", "no (default)")]
    assert asked(here) == "sure asks: Go on?\n  1. yes\n  2. no (default)\n"
    for text in ("no", "N", "2", " no "):
        answer = answering(TEXTS, here, text, keys)
        assert answer is not None
        assert (answer.choice, answer.reason) == (text.strip(), "")
    for text in ("yes please", "deny", "stop"):
        assert answering(TEXTS, here, text, keys) is None
    free = {**here, "options": [], "default": None}
    given = answering(TEXTS, free, "the red one")
    assert (given and given.choice, answering(TEXTS, free, "stop")) == ("the red one", None)
    questions = Questions()
    questions.hear(here)
    questions.give(here, keys[0].answer)  # type: ignore[arg-type]
    ended: Any = {"type": "step", "step": "sure", "state": "done"}
    assert (questions.hear({**ended, "state": "running"}), questions.first) == ("", here)
    assert (questions.hear(ended), questions.first) == ("sure: yes", None)


@pytest.mark.parametrize(
    ("choice", "report"),
    [
        ("allow", "`shell git status -s` was allowed once, not by an answer here."),
        (
            "always",
            "`shell git status -s` was allowed for this session, not by an answer here: "
            "/permissions says how much else.",
        ),
        ("deny", "`shell git status -s` was denied, not by an answer here."),
        ("withdrawn", ""),
    ],
)
def test_an_answer_from_elsewhere_is_reported(choice: str, report: str) -> None:
    """What another terminal allowed is said, also where it was quicker than another answer here."""
    questions = Questions()
    answered: Any = {"type": "answered", "id": "q-t1.s1.c1", "choice": choice}
    assert questions.hear(question()) == ""
    assert questions.hear(answered) == report
    questions.hear(question())
    named = report.replace(", not by an answer here", " by ann")
    assert questions.hear({**answered, "user": "ann"}) == named
    questions.hear(question())
    by_mode = report.replace(", not by an answer here", " by mode edits")
    assert questions.hear({**answered, "rule": "mode edits"}) == by_mode
    questions.hear(question(outside=False))
    here = question(outside=False)
    key = answer_keys(here, Path("/"))[1]
    questions.give(here, key.answer)
    given = "You allowed `shell git status*` for this session."
    assert questions.hear(answered) == (given if choice == "always" else report)
