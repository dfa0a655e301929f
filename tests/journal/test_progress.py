"""How far a message had come, as its session's journal tells it."""

import pytest

from steersman.journal import entries as e
from steersman.journal.entries import Reverted
from steersman.journal.queue_record import QueueRecord, apply_to_queue
from steersman.machines import protocol as m

RUN = (
    e.Queued(item="m1", number=1, said=m.Said(text="refactor")),
    e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
    e.ProgressMade(turn="t1", done=45, total=50, unit="file"),
    e.Interrupted(turn="t1", cause="bare_word"),
)


@pytest.mark.parametrize(
    ("reverted", "done"),
    [
        (Reverted(id="r1", scope="turn", restored=("a",), turns=("t1",)), None),
        (
            Reverted(
                id="r1", scope="turn", restored=("a",), kept=(("b", "changed"),), turns=("t1",)
            ),
            None,
        ),
        (Reverted(id="r1", scope="turn", is_dry_run=True, restored=("a",), turns=("t1",)), 45),
        (Reverted(id="r1", scope="turn", turns=("t1",)), 45),
        (Reverted(id="r1", scope="last", restored=("a",), turns=("t1",)), 45),
        (Reverted(id="r1", scope="turn", restored=("a",), turns=("t0",)), 45),
    ],
)
def test_a_completely_reverted_item_restarts(reverted: Reverted, done: int | None) -> None:
    """A revert of the turn takes its progress with it; a look, the last file or another turn don't."""
    queue = QueueRecord()
    for entry in (*RUN, reverted):
        queue = apply_to_queue(queue, entry, 0.0)
    progress = queue.items["m1"].progress
    assert (progress and progress["done"]) == done
