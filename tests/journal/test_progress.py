"""How far a message had come, as its session's journal tells it."""

import pytest

from steersman.journal import entries as e
from steersman.journal.queue import apply_to_queue
from steersman.journal.queue_record import QueueRecord
from steersman.journal.revert_entries import Reverted

RUN = (
    e.Queued("m1", 1, "refactor", "turn"),
    e.TurnStarted("t1", "m1", 1, 1),
    e.ProgressMade("t1", 45, 50, "file"),
    e.Interrupted("t1", "bare_word"),
)


@pytest.mark.parametrize(
    ("reverted", "done"),
    [
        (Reverted("r1", "turn", restored=("a",), turns=("t1",)), None),
        (Reverted("r1", "turn", restored=("a",), kept=(("b", "changed"),), turns=("t1",)), None),
        (Reverted("r1", "turn", is_dry_run=True, restored=("a",), turns=("t1",)), 45),
        (Reverted("r1", "turn", turns=("t1",)), 45),
        (Reverted("r1", "last", restored=("a",), turns=("t1",)), 45),
        (Reverted("r1", "turn", restored=("a",), turns=("t0",)), 45),
    ],
)
def test_what_is_given_back_whole_begins_anew(reverted: Reverted, done: int | None) -> None:
    """A revert of the turn takes its progress with it; a look, the last file or another turn don't."""
    queue = QueueRecord()
    for entry in (*RUN, reverted):
        queue = apply_to_queue(queue, entry, 0.0)
    progress = queue.items["m1"].progress
    assert (progress and progress["done"]) == done
