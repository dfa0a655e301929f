"""The facts of a turn, and claims that contradict them."""

import pytest

from steersman.journal import entries as e
from steersman.journal.turn_facts import TurnFacts, contradicted, written
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage


def ended(tool: str, exit_code: int | None = None, *changed: m.ChangedFile) -> e.ToolEnded:
    """Return the end of a call."""
    return e.ToolEnded(
        turn="t1",
        call="c",
        tool=tool,
        end=m.CallEnd(status="ok", exit_code=exit_code, changed=changed),
    )


NOTHING = TurnFacts().after(ended("read"), None)
FAILED = NOTHING.after(ended("shell", 2), "make test")
EDIT = m.ChangedFile(path="a.py", added=3, removed=1)
MADE = NOTHING.after(ended("write", None, m.ChangedFile(path="b", is_new=True)), None)
EDITED = NOTHING.after(ended("edit", None, EDIT), None)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (TurnFacts(), ""),
        (NOTHING, "No file was changed."),
        (FAILED, "The last command failed, exit 2: make test"),
        (FAILED.after(ended("shell", 0), "make test"), ""),
        (EDITED, "Changed: a.py (+3 -1)."),
        (EDITED.after(ended("edit", None, EDIT), None), "Changed: a.py (+6 -2)."),
        (
            NOTHING.after(ended("write", None, m.ChangedFile(path="b", is_new=True)), None),
            "Changed: b (new).",
        ),
    ],
)
def test_the_line_for_people(facts: TurnFacts, line: str) -> None:
    """What changed, or that nothing did, and a failure of the last command."""
    assert written(facts) == line


@pytest.mark.parametrize(
    ("facts", "answer", "fact"),
    [
        (NOTHING, "I have fixed the bug.", "no file was changed"),
        (NOTHING, "The --upper flag has been added to greet.py.", "no file was changed"),
        (NOTHING, "Done.", ""),
        (NOTHING, "The notes say that milk was added to the list.", ""),
        (NOTHING, "I have not changed anything.", ""),
        (NOTHING, "There are 19 errors.", ""),
        (EDITED, "I have fixed the bug.", ""),
        (FAILED, "The bug is fixed.", "exit code 2: make test"),
        (FAILED, "All tests pass.", "exit code 2: make test"),
        (FAILED, "The tests still fail.", ""),
        (FAILED, "It prints the wrong sum.", ""),
        (TurnFacts(), "Done.", ""),
    ],
)
def test_what_an_answer_contradicts(facts: TurnFacts, answer: str, fact: str) -> None:
    """A claim of a change where there is none, or of success where the last command failed."""
    found = contradicted(facts, [ChatMessage(role="assistant", text=answer)])
    assert (fact in found) if fact else found == ""
