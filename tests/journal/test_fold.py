"""A fold makes new parts and leaves the old ones alone, so that a copy of a record is a version of it."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from steersman.gateway.views.session_file import read_export
from steersman.journal import entries as e
from steersman.journal.child_record import apply_to_children
from steersman.journal.codec import decode, decode_entry, encode
from steersman.journal.entries import Entry, RunEntry
from steersman.journal.goal_record import apply_to_goals
from steersman.journal.log import IndexMap, Log
from steersman.journal.queue_record import apply_to_queue
from steersman.journal.record import SessionRecord, apply
from steersman.journal.revert_record import apply_to_reverts
from steersman.journal.run_record import NOTHING
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage
from steersman.machines.errors import StoreDamaged
from steersman.simulator.scenario import Scenario

GOLDEN = [Path(__file__).parent / "golden" / "1.json"]
SEEDS = range(0, 40, 8)


def golden(file: Path) -> list[Entry]:
    """Return the entries of a golden journal."""
    return [decode_entry(stored["data"]) for stored in read_export(file)["entries"]]


def simulated(seed: int) -> Iterator[list[Entry]]:
    """Give the journals of all sessions of one simulated program."""
    store = Scenario(seed).run().store
    for row in store.sessions():
        yield [decode_entry(stored.data) for stored in store.entries(row.session)]


def a_run() -> list[Entry]:
    """Return the journal of a run that is interrupted, goes on, fails and is tried again."""
    said = e.WorkResult(output="said", exit_code=0)
    failed = e.WorkResult(reason="exit code 1", exit_code=1)
    workflow = e.WorkflowCopy(name="x", file="x.toml", folder="", source="")
    return [
        e.SessionOpened(
            session="s1", folder="/", agent="assistant", model="main", system="", workflow=workflow
        ),
        e.Queued(item="m1", number=1, said=m.Said(text="run x")),
        e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
        e.StepStarted(turn="t1", step="a", items=("one", "two", "three")),
        e.ItemStarted(turn="t1", step="a", index=0, call="t1.w1"),
        e.ItemStarted(turn="t1", step="a", index=1, call="t1.w2", is_child=True),
        e.ItemEnded(turn="t1", step="a", index=0, status="ok", result=said),
        e.Recovered(cause="crash", items=1, last_active=8.0),
        e.TurnStarted(turn="t2", item="m1", number=1, epoch=2, resumes="t1"),
        e.StepStarted(turn="t2", step="a"),
        e.ItemStarted(turn="t2", step="a", index=1, call="t2.w1"),
        e.StepAsked(turn="t2", step="a", index=1, question="q-t2.w1", text="go on?"),
        e.ItemEnded(turn="t2", step="a", index=1, status="retry", result=failed),
        e.ItemReopened(step="a", index=1),
        e.ItemStarted(turn="t2", step="a", index=1, call="t2.w2", attempt=2),
        e.ItemEnded(turn="t2", step="a", index=1, status="failed", result=failed),
        e.StepEnded(turn="t2", step="a", status="failed", reason="1 of 3 failed"),
        e.TurnEnded(turn="t2", status="failed", reason="step `a` failed"),
        e.StepReopened(step="a"),
    ]


def require_versions(entries: list[Entry]) -> SessionRecord:
    """Fold a journal and require that no version of its record is changed by a later entry."""
    record = SessionRecord()
    for seq, entry in enumerate(entries, 1):
        before, known = copy.copy(record), json.dumps(encode(record))
        apply(record, entry, seq, float(seq))
        assert json.dumps(encode(before)) == known, f"entry {seq} changed a part: {entry}"
    data = json.loads(json.dumps(encode(record)))
    assert decode(SessionRecord, data) == record
    return record


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_journal_changes_no_part_in_place(file: Path) -> None:
    """A shallow copy of the record, made before any entry, stays as it was."""
    require_versions(golden(file))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulated_program_changes_no_part_in_place(seed: int) -> None:
    """The same holds for sessions with children, steers, cancels, reverts and crashes."""
    for entries in simulated(seed):
        require_versions(entries)


def test_a_run_changes_no_part_in_place() -> None:
    """The same holds for a run whose items fail, are asked about and are tried again."""
    record = require_versions(a_run())
    assert record.run is not None
    step = record.run.steps["a"]
    assert (step.state, step.marks, step.result(0).output) == ("interrupted", "dww", "said")
    assert (step.attempts, step.children, step.result(2)) == ({}, {}, NOTHING)


def test_entries_of_runs_concern_nothing_else() -> None:
    """Entries that are folded into a run alone leave every other part the same object."""
    record = SessionRecord()
    for seq, entry in enumerate(a_run(), 1):
        if isinstance(entry, RunEntry):
            require_untouched(record, entry)
        apply(record, entry, seq, float(seq))


def require_untouched(record: SessionRecord, entry: Entry) -> None:
    """Require that an entry leaves the queue, the children, the goals and the reverts alone."""
    assert apply_to_queue(record.queue, entry, 9.0) is record.queue
    assert apply_to_children(record.children, entry, 9.0) is record.children
    assert apply_to_goals(record.goals, entry, 9.0) is record.goals
    assert apply_to_reverts(record.reverts, entry) is record.reverts


def test_a_refused_entry_leaves_the_original_of_a_copy() -> None:
    """What is folded into a copy, and refused half-way, is in no part of the original."""
    record = SessionRecord()
    for seq, entry in enumerate(golden(GOLDEN[0]), 1):
        apply(record, entry, seq, float(seq))
    known, count = json.dumps(encode(record)), len(record.conversation)
    draft = copy.copy(record)
    said = (ChatMessage(role="user", text="and this"),)
    apply(
        draft,
        e.Queued(
            item="m90", number=90, said=m.Said(text="and this"), routed=m.Routed(said_as="queue")
        ),
        record.seq + 1,
        1.0,
    )
    with pytest.raises(StoreDamaged):  # the queue takes it, and the suspended session refuses
        apply(
            draft,
            e.TurnStarted(turn="t90", item="m90", number=90, epoch=90, resumes="", messages=said),
            record.seq + 2,
            2.0,
        )
    assert "m90" in draft.queue.items
    assert (json.dumps(encode(record)), len(record.conversation)) == (known, count)


def test_versions_of_a_log_do_not_see_each_other() -> None:
    """Two that follow the same version each have their own end; slices are tuples."""
    first = Log("ab")
    second, other = first.extended("cd"), first.extended("xy")
    assert (list(first), list(second), list(other)) == (["a", "b"], [*"abcd"], [*"abxy"])
    assert (second[-1], second[1:], first[1:], first[5:]) == ("d", ("b", "c", "d"), ("b",), ())
    assert (list(reversed(second)), second == [*"abcd"], first == second) == (
        [*"dcba"],
        True,
        False,
    )
    assert first.extended(()) is first
    assert [second.extends(log) for log in (first, second, other, ["a", "b"])] == [
        True,
        True,
        False,
        False,
    ]
    assert not first.extends(second)
    with pytest.raises(IndexError):
        first[2]


def test_versions_of_an_index_map_do_not_see_each_other() -> None:
    """A change makes another mapping, in whatever chunk the key lies."""
    items = {str(index): index for index in range(250)}
    first = IndexMap(items)
    second = first.with_item("7", -7).without("199").with_item("1000", 1)
    assert (first, len(first)) == (items, 250)
    changed = {**items, "7": -7, "1000": 1}
    del changed["199"]
    assert (second, len(second)) == (changed, 250)
    assert second.without("199") is second
