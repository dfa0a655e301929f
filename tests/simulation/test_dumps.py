"""Every state that the simulator visits can be looked at, and every journal gives its state again."""

import json
import tomllib
from typing import Any

import pytest
from msgspec.structs import force_setattr
from simulation.test_workflow import played

from steersman.cli.output import toml_document, without_nulls
from steersman.gateway.views.dump import dump_session
from steersman.gateway.views.tree import draw_dump
from steersman.gateway.wording.redaction import Redactor
from steersman.journal.codec import decode_entry
from steersman.journal.history import record_at
from steersman.journal.record import SessionRecord, apply, without_conversation
from steersman.journal.recovery import fold, load_record
from steersman.journal.store import Store
from steersman.simulator.goals import GoalScenario
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.scenario import Scenario

SECRET = "sk-abcdefghijklmnop1234"
PLANTED = f" {SECRET} \x1b]0;owned\x07 hunter2hunter2 \u202e"
GOAL_STATES = ("active", "paused", "cleared", "achieved")
REDACTOR = Redactor({"SOME_TOKEN": "hunter2hunter2"})


def plant(program: SimulatedProgram) -> None:
    """From now on whatever people say there holds a secret and an escape."""
    say = program.say

    def spiked(message: Any) -> None:
        for name in ("content", "text"):
            text = getattr(message, name, None)
            if text and not text.endswith(PLANTED):
                force_setattr(message, name, text + PLANTED)
        say(message)

    program.say = spiked  # type: ignore[method-assign]


def check_dumps(store: Store) -> set[str]:
    """At each entry of each session the dump parses, reads back the same, and holds nothing planted.

    Returns the actors that were shown, each with its state.
    """
    shown = set[str]()
    for row in store.sessions():
        for seq in range(1, row.seq + 1):
            data = REDACTOR.data(dump_session(store, row, seq))
            assert data["seq"] == seq
            assert json.loads(json.dumps(data)) == data
            toml = toml_document(data)
            assert tomllib.loads(toml) == without_nulls(data)
            for text in (toml, draw_dump(data)):
                assert SECRET[5:] not in text
                assert "hunter2" not in text
                assert "\x1b" not in text
                assert not set("\x1b\x07\u202e") & set(text)
            shown |= {f"{name} {one['state']}" for name, one in data["actors"].items()}
    return shown


def bare(record: SessionRecord) -> SessionRecord:
    """Leave out the conversation, which only a whole read gives."""
    return without_conversation(record)


def goal_states(store: Store) -> set[str]:
    """Return every state that a current goal was in."""
    record, states = SessionRecord(), set[str]()
    for entry in store.entries(store.sessions()[0].session):
        apply(record, decode_entry(entry.data), entry.seq, entry.time)
        states |= {f"goal {record.goals.goal.state}"} if record.goals.goal else set()
    return states


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_every_state_has_a_dump(seed: int) -> None:
    """Of conversations, with whatever is queued, steered, stopped, delegated and asked aside."""
    scenario = Scenario(seed)
    plant(scenario.program)
    assert "session idle" in check_dumps(scenario.run().store)


def test_every_state_of_a_goal_has_a_dump() -> None:
    """Of goals: of each run, from the first seed on, that comes to a state not shown before."""
    shown, wanted = set[str](), {f"goal {state}" for state in GOAL_STATES}
    for seed in range(300):
        scenario = GoalScenario(seed)
        plant(scenario.program)
        store = scenario.run().store
        if (wanted - shown) & goal_states(store):
            shown |= check_dumps(store)
        if wanted <= shown:
            return
    raise AssertionError(f"only {shown} came")


@pytest.mark.nightly
def test_every_state_of_a_run_has_a_dump() -> None:
    """Of workflows' runs, with an item that holds what must not be shown, stopped and killed."""
    shown = set[str]()
    for seed in range(4):
        program, _ = played(seed)
        program.close()
        shown |= check_dumps(program.store)
    assert {f"turn {state}" for state in ("running", "interrupted", "succeeded")} <= shown


@pytest.mark.parametrize("seed", range(12, 32))
def test_every_journal_gives_its_state_again(seed: int) -> None:
    """From the first entry, from a snapshot, or in two steps: the same state at the same entry."""
    store = Scenario(seed).run().store
    for row in store.sessions():
        for seq in range(1, row.seq + 1, 3):
            whole = fold(store, row.session, SessionRecord(), seq)
            assert load_record(store, row.session, seq) == whole
            assert bare(record_at(store, row.session, seq)) == bare(whole)
        if row.seq:  # else it was never opened
            assert bare(load_record(store, row.session)) == bare(
                record_at(store, row.session, row.seq)
            )
