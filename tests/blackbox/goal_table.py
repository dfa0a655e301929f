"""Which transitions of a goal the black-box tests go through: a table, and what their journals say.

A judge's moves are not journalled one by one; that all of them are made is shown by the simulation.
"""

import os
from collections.abc import Iterator

from simulation.goal_moves import Move, goal_moves
from support.driver import Place

from steersman.cli.stored import stored
from steersman.journal.codec import decode_entry
from steersman.simulator.happening import Appended

__all__ = ["REACHED", "moves_in"]

REACHED: dict[Move, str] = {
    ("lined_up", "begin", "active"): "test_goals_wait_in_line_and_conditions_cost_no_turn",
    ("lined_up", "clear", "cleared"): "test_each_word_in_each_state",
    ("active", "continue", "active"): "test_a_judge_that_never_ends_spends_exactly_the_budget",
    ("active", "wait", "waiting"): "test_goals_wait_in_line_and_conditions_cost_no_turn",
    ("active", "achieve", "achieved"): "test_a_goal_is_worked_for_until_it_is_done",
    ("active", "give_up", "impossible"): "test_each_word_in_each_state",
    ("active", "pause", "paused"): "test_a_stop_amid_turns_that_begin_every_moment",
    ("active", "clear", "cleared"): "test_each_word_in_each_state",
    ("waiting", "wake", "active"): "test_what_is_waited_for_costs_no_turn",
    ("waiting", "pause", "paused"): "test_each_word_in_each_state",
    ("waiting", "resume", "active"): "test_each_word_in_each_state",
    ("waiting", "clear", "cleared"): "test_each_word_in_each_state",
    ("paused", "resume", "active"): "test_a_stop_amid_turns_that_begin_every_moment",
    ("paused", "clear", "cleared"): "test_a_judge_that_never_ends_spends_exactly_the_budget",
}
"""Each transition, and a test that goes through it; when that test ends, its journal is asked."""


def moves_in(place: Place) -> set[Move]:
    """Read what became of the goals of all sessions of a place."""
    return {move for happenings in _journals(place) for move in goal_moves(happenings)}


def _journals(place: Place) -> Iterator[list[Appended]]:
    with stored(os.environ | place.environ) as store:
        for row in store.sessions():
            entries = store.entries(row.session)
            yield [Appended(seq=entry.seq, entry=decode_entry(entry.data)) for entry in entries]
