"""Claims on files: which session gets one, which gets an error, and when a claim ends."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steersman.actors.tool_policy import Claims
from steersman.journal.child_record import ChildRecord
from steersman.journal.record import SessionRecord
from steersman.journal.turn_record import TurnRecord
from steersman.machines.delivery import Relation

FILE = Path("/project/notes.txt")


@dataclass
class One:
    """A session with a running turn."""

    record: SessionRecord
    parent: str = ""


@dataclass
class Family:
    """A parent `p`, its children by name with how it stands to them, and a stranger `x`."""

    sessions: dict[str, One] = field(default_factory=dict[str, One])

    def add(self, session: str, parent: str = "", relation: str = "") -> None:
        """Add a session that works."""
        record = SessionRecord(id=session)
        self.sessions[session] = One(record, parent)
        self.turn(session, "t1")
        if parent:
            child = ChildRecord(
                name=session, session=session, agent="assistant", task="task", relation=relation
            )
            above = self.sessions[parent].record
            above.children = {**above.children, session: child}

    def turn(self, session: str, name: str, is_over: bool = False) -> None:
        """Let a turn run, or be over."""
        record = self.sessions[session].record
        record.turn = name
        turn = TurnRecord(id=name, item="m1", number=1, is_over=is_over)
        record.turns = {**record.turns, name: turn}


@pytest.fixture
def family() -> Family:
    """A parent that waits for `a` and `b`, and has `c` in the background; and a stranger."""
    made = Family()
    made.add("p")
    made.add("a", "p", Relation.FOREGROUND_CHILD)
    made.add("b", "p", Relation.FOREGROUND_CHILD)
    made.add("c", "p", Relation.BACKGROUND_CHILD)
    made.add("aa", "a", Relation.FOREGROUND_CHILD)
    made.add("x")
    return made


@pytest.mark.parametrize(
    ("first", "second", "who"),
    [
        ("a", "a", ""),
        ("a", "b", "subagent `a`"),
        ("b", "aa", "subagent `b`"),
        ("x", "p", "session `x`"),
        ("p", "a", ""),  # it waits, and does nothing itself
        ("p", "aa", ""),
        ("a", "aa", ""),
        ("p", "c", "session `p`"),  # it goes on beside it
        ("a", "p", "subagent `a`"),
        ("a", "x", "subagent `a`"),
    ],
)
def test_the_second_session_gets_an_error(
    family: Family, first: str, second: str, who: str
) -> None:
    """Another one's call on the same file is refused by name, unless the first waits for it."""
    claims = Claims(family.sessions)
    assert claims.fault(first, FILE) == ""
    said = claims.fault(second, FILE)
    assert said.startswith(f"{who} is changing") if who else said == ""
    assert claims.fault(second, FILE.with_name("other.txt")) == ""


def test_a_refusal_claims_nothing(family: Family) -> None:
    """A session whose claim was refused blocks no third session."""
    claims = Claims(family.sessions)
    claims.fault("a", FILE)
    assert claims.fault("b", FILE)
    family.turn("a", "t2")
    assert claims.fault("x", FILE) == ""


def test_a_claim_ends_with_its_turn(family: Family) -> None:
    """Once the turn and all that it started have ended, the file is free."""
    claims = Claims(family.sessions)
    claims.fault("a", FILE)
    family.turn("a", "t1", is_over=True)
    assert claims.fault("b", FILE) == ""


def test_a_claim_ends_with_its_session(family: Family) -> None:
    """A session that is not open here any more holds nothing."""
    claims = Claims(family.sessions)
    claims.fault("a", FILE)
    del family.sessions["a"]
    assert claims.fault("b", FILE) == ""


def test_the_next_turn_needs_a_new_claim(family: Family) -> None:
    """What a session's next turn changes is its own again."""
    claims = Claims(family.sessions)
    claims.fault("a", FILE)
    family.turn("a", "t2")
    assert claims.fault("a", FILE) == ""
    assert claims.fault("b", FILE)
