"""From the routing table's row to the listener: each row's acknowledgement arrives as an event."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from simulation.single import TALK, TOOLS, run, say

from steersman.gateway.events.contract import Event
from steersman.gateway.events.translation import EventPublisher
from steersman.gateway.wording.acknowledgement import acknowledgement_text
from steersman.machines import protocol as m
from steersman.machines.disposition import DEFAULT_DISPOSITIONS, Action, DispositionRow, Intent
from steersman.machines.policy import Policy
from steersman.machines.routing import Table
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulationPlan

ROWS = [row for row in DEFAULT_DISPOSITIONS.rows if row.action is not Action.COMMAND]


def program(chances: Chances, **settings: Any) -> tuple[SimulatedProgram, list[Event]]:
    """Start a program with a first message at work; return its events, too."""
    plan = SimulationPlan(policy=Policy(**settings), chances=chances, haste=0.0, longest_batch=1)
    made, heard = SimulatedProgram(plan, Random(7), session_first), list[Event]()
    made.environment.observers = (EventPublisher("s1", heard.append, lambda: 0.0),)
    say(made, "work", client_id="c1")
    return made, heard


def session_first(names: Sequence[str]) -> int:
    """Let the session, whose name is empty, go before all others."""
    return names.index("") if "" in names else 0


def answer(heard: list[Event], client_id: str) -> Event:
    """Return what one message was answered."""
    (found,) = [event for event in heard if event.get("client_id") == client_id]
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("intent", [Intent.INTERRUPT_BARE, Intent.CONVERSE])
def test_each_row_is_acknowledged_as_it_says(row: DispositionRow, intent: Intent) -> None:
    """With this row for everything, its acknowledgement, with its words, is what a listener gets."""
    made, heard = program(TALK)
    run(made, lambda: row.action is not Action.RUN and bool(made.ports.models))
    space = DEFAULT_DISPOSITIONS.space
    made.environment.dispositions = Table("one row", space, (replace(row, when={}),))
    say(made, "exit now", intent, "c2", "exit")
    run(made)
    told = answer(heard, "c2")
    if row.action is Action.REFUSE:
        assert (told["type"], told["reason"]) == ("rejected", row.ack)
        return
    assert (told["type"], told["ack"], told["rule"]) == ("accepted", row.ack or None, row.name)
    assert bool(told["ack_text"]) == bool(row.ack)


@pytest.mark.parametrize(
    ("intent", "matched", "settings", "decided"),
    [
        (Intent.INTERRUPT_BARE, "stop", {}, "stop"),
        (Intent.INTERRUPT_MORE, "stop", {}, "stop"),
        (Intent.INTERRUPT_MORE, "stop", {"busy_mode": "queue", "strategy": "never"}, "stop"),
        (Intent.STEER_WORD, "actually", {}, None),
        (Intent.STEER_WORD, "actually", {"busy_mode": "queue"}, "actually"),
        (Intent.STEER_WORD, "actually", {"busy_mode": "steer"}, None),
    ],
)
def test_a_word_is_named_only_where_it_decided(
    intent: Intent, matched: str, settings: dict[str, Any], decided: str | None
) -> None:
    """A word that changed nothing about how its message was taken is not the one that matched."""
    made, heard = program(TALK, **settings)
    run(made, lambda: bool(made.ports.models))
    kind: Any = "steer" if intent is Intent.STEER_WORD else "interrupt"
    made.say(
        m.UserMessage(
            type=kind, said=m.Said(text="words", client_id="c2"), intent=intent, matched=matched
        )
    )
    run(made)
    assert answer(heard, "c2")["matched"] == decided


def test_at_rest_no_word_decides() -> None:
    """With nothing running every message is a turn, whatever its words."""
    made, heard = program(TALK)
    run(made)
    say(made, "stop it", Intent.INTERRUPT_BARE, "c2", "stop")
    run(made)
    told = answer(heard, "c2")
    assert (told["as"], told["rule"], told["matched"]) == ("turn", "run", None)


def test_a_stop_that_comes_again_says_so() -> None:
    """While the turn is being stopped a second bare word is answered: already stopping."""
    made, heard = program(TOOLS)
    run(made, lambda: bool(made.ports.tools))
    for key in ("c2", "c3"):
        say(made, "stop", Intent.INTERRUPT_BARE, key)
        run(made, lambda: made.record.state == "interrupting")
    run(made)
    told = answer(heard, "c3")
    assert (told["ack"], told["ack_text"]) == ("already_stopping", "Already stopping.")


def test_a_steer_behind_the_last_answer_enters() -> None:
    """A steer that comes while the last answer is on its way to the turn enters that turn."""
    made, heard = program(TALK)
    run(made, lambda: bool(made.ports.models))
    run(made, lambda: not made.ports.models)  # the answer is in the turn's mailbox
    say(made, "use tabs", Intent.EXPLICIT_STEER, "c2")
    run(made)
    told = answer(heard, "c2")
    assert (told["as"], told["ack"]) == ("steer", "steered")
    assert (made.record.turn, made.record.turns["t1"].step) == ("t1", 2)


def test_a_planned_stop_is_acknowledged_by_its_row() -> None:
    """A stop that waits for a tool carries the same acknowledgement as one that does not."""
    made, heard = program(TOOLS, interrupt_at="boundary")
    run(made, lambda: bool(made.ports.tools))
    say(made, "stop", Intent.INTERRUPT_BARE, "c2", "stop")
    run(made)
    told = answer(heard, "c2")
    assert (told["ack"], told["matched"]) == ("interrupt_detected", "stop")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make it focus on ownership", "make it focus on ownership"),
        ("use   tabs\nnot spaces", "use tabs not spaces"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "..."),
        (
            "make it focus on ownership rather than on borrowing",
            "make it focus on ownership rather than...",
        ),
        ("what is the syntax for optional fields?x", "what is the syntax for optional fields?x"),
        ("what is the syntax for optional fields of", "what is the syntax for optional fields..."),
    ],
)
def test_a_quoted_message_is_cut_at_a_word(text: str, shown: str) -> None:
    """It has 40 characters of its own, whatever stands before it."""
    said = acknowledgement_text("queued", {"text": text, "number": 2})
    assert said == f'📥 Queued #2: "{shown}"'


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (82, "make it focus on ownership rather than on borrowing"),
        (70, "make it focus on ownership rather than..."),
        (10, "make it focus on..."),
    ],
)
def test_a_quoted_message_fills_the_line_of_a_terminal(columns: int, shown: str) -> None:
    """With the name of its sender it has one line, unless that is very short."""
    text = "make it focus on ownership rather than on borrowing"
    message = {"text": text, "number": 2, "user": "ann"}
    said = acknowledgement_text("queued", message, columns=columns)
    assert said == f'📥 Queued #2: "{shown}" (from ann)'
