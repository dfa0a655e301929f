"""Comparing tables: every cell that differs is reported once, as a sentence with an example."""

from itertools import product

import pytest
from msgspec.structs import replace

from steersman.machines.disposition import Action, DispositionRow
from steersman.machines.routes import STEERSMAN
from steersman.machines.routing import when
from steersman.proofs.explanation import everybody, explain
from steersman.proofs.route_diff import boxes, differences, place_in_words
from steersman.workflows.suggestions import table_names
from steersman.workflows.table_file import named_table


@pytest.mark.parametrize("name", table_names()[1:])
def test_the_differences_cover_what_differs_and_nothing_else(name: str) -> None:
    """Each combination of the first table is in a difference just if its outcome is another."""
    other = named_table(name)
    space = STEERSMAN.dispositions.space
    covered = set[tuple[str, ...]]()
    for difference in differences(STEERSMAN, other):
        if not {"cause", "relation"} & set(difference.where):
            covered |= set(
                product(*(difference.where.get(each, known) for each, known in space.items()))
            )
    for key in STEERSMAN.dispositions.keys():
        pair = [explain(each, key, everybody(key[1])).outcome for each in (STEERSMAN, other)]
        assert (key in covered) == (pair[0] != pair[1]), key


def test_a_table_does_not_differ_from_itself() -> None:
    """Nor from one whose rows are written otherwise and decide the same."""
    row = DispositionRow(
        name="idle-talk", when=when(intent="converse", situation="idle"), action=Action.RUN
    )
    same = STEERSMAN.dispositions.override([row])
    assert differences(STEERSMAN, STEERSMAN) == []
    assert differences(STEERSMAN, replace(STEERSMAN, dispositions=same)) == []


def test_a_difference_reads_as_a_sentence() -> None:
    """Place, both outcomes, and something to say that shows it."""
    row = DispositionRow(
        name="wait",
        when=when(intent="converse", situation="busy"),
        action=Action.QUEUE,
        ack="queued",
    )
    other = replace(STEERSMAN, dispositions=STEERSMAN.dispositions.override([row]))
    first = differences(STEERSMAN, other)[0]
    assert place_in_words(first) == ("On converse while a turn runs, and no child, strategy always")
    assert (first.ours, first.theirs, first.example) == (
        "interrupts (`interrupting`): the turn is stopped",
        "is queued (`queued`)",
        "how is it going?",
    )


def test_boxes_cover_each_combination_once_in_the_count() -> None:
    """Boxes may overlap; what they add sums up to what there is, and nothing else gets in."""
    space = {"x": ("1", "2", "3"), "y": ("a", "b", "c")}
    keys = [("1", "a"), ("1", "b"), ("1", "c"), ("2", "b"), ("3", "b")]
    found = list(boxes(space, keys))
    assert [cells for _, cells in found] == [3, 2]
    held = [
        set(product(*(box.get(name, known) for name, known in space.items()))) for box, _ in found
    ]
    assert set().union(*held) == set(keys)
