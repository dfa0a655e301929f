"""Every state that the simulator visits can be looked at, and every journal gives its state again."""

import json
import tomllib
from typing import Any

import pytest
from simulation.invariants import normal
from simulation.scenario import Scenario

from steersman.actors.simulated_program import SimulatedProgram
from steersman.cli.toml import toml_document, without_nulls
from steersman.gateway.dump import dump_session
from steersman.gateway.redaction import Redactor
from steersman.gateway.tree import draw_dump
from steersman.journal.history import record_at
from steersman.journal.record import SessionRecord
from steersman.journal.recovery import load_record

SECRET = "sk-abcdefghijklmnop1234"
PLANTED = f" {SECRET} \x1b]0;owned\x07 hunter2hunter2 \u202e"
REDACTOR = Redactor({"SOME_TOKEN": "hunter2hunter2"})


class Planted(Scenario):
    """A run in which what people say holds a secret and an escape; every state is looked at."""

    def run(self) -> SimulatedProgram:
        """Play it; look at each entry of each session at its end."""
        say = self.program.say

        def spiked(message: Any) -> None:
            text = getattr(message, "content", None)
            if text and not text.endswith(PLANTED):
                object.__setattr__(message, "content", text + PLANTED)
            say(message)

        self.program.say = spiked  # type: ignore[method-assign]
        return super().run()


def bare(record: SessionRecord) -> SessionRecord:
    """Leave out the conversation, which only a whole read gives."""
    record = normal(record)
    record.conversation, record.sources = [], []
    return record


@pytest.mark.parametrize("seed", range(12))
def test_every_state_has_a_dump(seed: int) -> None:
    """At each entry: the dump parses, reads back the same, draws, and holds nothing planted."""
    program = Planted(seed).run()
    store = program.store
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
                assert "owned" not in text


@pytest.mark.parametrize("seed", range(12, 32))
def test_every_journal_gives_its_state_again(seed: int) -> None:
    """From the first entry, from a snapshot, or in two steps: the same state at the same entry."""
    store = Scenario(seed).run().store
    for row in store.sessions():
        for seq in range(1, row.seq + 1, 3):
            whole = bare(load_record(store, row.session, seq))
            assert bare(record_at(store, row.session, seq)) == whole
        if row.seq:  # else it was never opened
            assert bare(load_record(store, row.session)) == bare(
                record_at(store, row.session, row.seq)
            )
