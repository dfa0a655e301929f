"""A goal whose program is killed anywhere: it rests, has spent what it had, and goes on when told."""

import itertools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from blackbox.judged import DONE, GO_ON, Start, wait_goal, waits_for
from blackbox.life import COMMIT, IS_WHOLE, STRACE, Life, Point, calls_of
from support.driver import WAIT, Chat, Gate, Place, wait_gone
from support.model_server import Behaviour, Hang, ModelServer, Recorded, Text, Tools

Reached = Callable[[Chat, ModelServer, ModelServer, Gate], object]

STAGES: dict[str, tuple[str, int, Reached]] = {
    "turn": ("", 2, lambda chat, agent, *_: _asked_in_turn(2, chat, agent)),
    "gate": ("", 1, lambda chat, agent, judge, gate: gate.wait()),
    "judge": ("", 1, lambda chat, agent, judge, gate: judge.wait_requests(1, WAIT)),
    "pause": ("backoff = 60.0\nbackoff_limit = 60.0", 2, lambda chat, *_: _verdicts(chat, 2)),
    "waiting": ("", 1, lambda chat, *_: wait_goal(chat, "waiting")),
    "paused": ("max_turns = 1", 1, lambda chat, *_: wait_goal(chat, "paused", "budget")),
    "resumed": ("max_turns = 1", 2, lambda chat, agent, *_: _asked_in_turn(1, chat, agent)),
}
"""Where a goal is killed: its settings, the turns that are spent by then, and how one knows."""


def _asked_in_turn(count: int, chat: Chat, agent: ModelServer) -> None:
    """Wait for the second request and for its turn, which may be kept after that: so many from now."""
    for _ in range(count):
        chat.wait("turn_started")
    agent.wait_requests(2, WAIT)


def _verdicts(chat: Chat, count: int) -> None:
    for _ in range(count):
        chat.wait("verdict")


@pytest.mark.parametrize("stage", STAGES)
def test_a_goal_that_is_killed_rests_and_has_spent_what_it_had(
    place: Place, start: Start, gate: Gate, stage: str
) -> None:
    """After kill -9 the goal is paused and nothing runs; resume adds a budget to the spent one."""
    settings, spent, reached = STAGES[stage]
    lives = [1]

    def work(request: Recorded) -> Behaviour:
        turn = sum(message["role"] == "user" for message in request.body["messages"])
        hangs = lives == [1] and turn == 2 and stage in ("turn", "resumed")
        return Hang() if hangs else Text(f"Step {turn}.")

    def look(request: Recorded) -> Behaviour:
        if lives == [1, 2]:
            return Text(DONE)
        if stage == "judge":
            return Hang()
        return Text(waits_for('{"file": "never"}') if stage == "waiting" else GO_ON)

    agent, judge = start(work, look, settings)
    chat = place.chat()
    option = f"""--gate 'sh -c "{gate.command}"' """ if stage == "gate" else ""
    chat.send(f"/goal {option}survive")
    if stage == "resumed":
        wait_goal(chat, "paused", "budget")
        chat.send("/goal resume")
    reached(chat, agent, judge, gate)
    running = place.processes()
    chat.kill()
    assert not wait_gone(running, 2.0)
    asked = len(agent.requests), len(judge.requests)
    reason = "budget" if stage == "paused" else "interrupt"
    status = place.data("goal", "status")
    found = (status["state"], status["reason"], status["turns_total"])
    assert found == ("paused", reason, spent)
    if stage != "paused":
        refused = place.run("goal", "resume")
        assert refused.returncode == 1
        way = f"the session is not open: `steersman chat --resume {chat.session}` resumes it"
        assert way in refused.stderr + refused.stdout

    again = place.chat("--continue")
    paused = wait_goal(again, "paused", reason)
    assert paused["turns_total"] == spent
    again.ask("/goal")
    assert (len(agent.requests), len(judge.requests)) == asked
    assert list(place.processes()) == [again.process.pid]
    lives.append(2)
    gate.open()
    again.send("/goal resume")
    achieved = wait_goal(again, "achieved")
    assert (achieved["turns_used"], achieved["turns_total"]) == (1, spent + 1)
    assert again.close() == 0


# At each write ------------------------------------------------------------------------------------

BUDGET = 3
FEW = 3
"""Points of each kind that are always taken; STEERSMAN_SWEEP=all takes all (some minutes)."""
KINDS = (COMMIT, ("pwrite64", COMMIT[1]))
RESTING = {
    "session_started",
    "recovered",
    "requeued",
    "notice",
    "queue",
    "accepted",
    "result",
    "goal",
}
GATE = """--gate 'sh -c "echo ran >> gates; test -e ok"'"""


class GoalLife(Life):
    """A goal that fails at its gate, waits, spends its budget, is resumed, and spends it again."""

    settings = f"[goals]\nmax_turns = {BUDGET}\nbackoff = 0.0\n"

    def mind(self) -> Callable[[Recorded], Behaviour]:
        """Work, a step a turn, in the second of which what the gate wants is done; and judge."""
        waits = itertools.chain([waits_for('{"seconds": 0.05}')], itertools.repeat(GO_ON))

        def think(request: Recorded) -> Behaviour:
            if "## The goal" in request.prompt:
                return Text(next(waits))
            said = request.body["messages"]
            turn = sum(message["role"] == "user" for message in said)
            if turn == 2 and said[-1]["role"] == "user":
                return Tools([{"tool": "write", "arguments": {"path": "ok", "content": "x"}}])
            return Text(f"That was step {turn}.")

        return think

    def converse(self, chat: Chat) -> None:
        """Set it, let it spend its budget, let it go on until that is spent again, and leave."""
        chat.send(f"/goal {GATE} work")
        wait_goal(chat, "paused", "budget")
        chat.send("/goal resume")
        wait_goal(chat, "paused", "budget")
        chat.close()

    def seen(self) -> tuple[int, int, int]:
        """Count the turns that reached the model, what the judge was asked, and the gate's runs."""
        turns, judged = set[int](), 0
        for request in self.server.requests:
            judged += "## The goal" in request.prompt
            if "## The goal" not in request.prompt:
                turns.add(sum(said["role"] == "user" for said in request.body["messages"]))
        gates = self.place.folder / "gates"
        return len(turns), judged, len(gates.read_text().split()) if gates.exists() else 0

    def begun(self) -> int:
        """Count the goal's turns that have begun, by the journal."""
        entries: list[dict[str, Any]] = self.place.stored("last", "--events")["events"]
        return sum(entry["kind"] == "turn_started" for entry in entries)


def check(life: GoalLife, printed: int) -> None:
    """Restart: nothing runs, all that began is paid for and no more; then exactly the grant is spent."""
    before = life.seen()
    chat = life.place.chat("--continue", "--yes")
    if chat.ended_without("session_started"):
        assert (chat.ended(), before) == (1, (0, 0, 0))
        return
    goal = chat.ask("/goal")["data"]
    assert set(chat.kinds()) <= RESTING
    assert life.seen() == before
    if goal["state"] is None:
        assert before == (0, 0, 0)
        return
    assert goal["state"] == "paused"
    assert goal["turns_used"] <= BUDGET
    assert goal["turns_total"] == life.begun() >= max(before[0], printed)
    chat.send("/goal resume")
    paused = wait_goal(chat, "paused", "budget")
    assert (paused["turns_used"], paused["turns_total"]) == (BUDGET, goal["turns_total"] + BUDGET)
    assert chat.close() == 0
    assert life.begun() == paused["turns_total"]
    assert len(chat.seen("turn_started")) == BUDGET


@pytest.mark.nightly
@pytest.mark.timeout(3600 if IS_WHOLE else 300)
@pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a write")
def test_a_goal_that_is_killed_at_any_write_stays_in_its_budget(tmp_path: Path) -> None:
    """Before and at each commit: what had begun is paid for once, nothing goes on, the grant is exact."""
    with Life(tmp_path / "used") as life:
        assert life.place.chat().close() == 0
    used = life.state
    with GoalLife(tmp_path / "whole", used) as whole:
        counts = calls_of(whole)
    chance = random.Random(7)
    points = [
        Point(False, *kind, number)
        for kind in KINDS
        for number in _some(chance, range(1, counts[kind] + 1))
    ]

    def one(number: int) -> tuple[bool, str]:
        with GoalLife(tmp_path / str(number), used) as life:
            chat = life.run_until(points[number])
            try:
                check(life, len(chat.seen("turn_started")))
            except AssertionError as wrong:
                story = "".join(f"\n{chat.story()}" for chat in life.place.chats)
                return True, f"{points[number]}: {wrong}{story}"
            return chat.process.returncode != 0, ""

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(one, range(len(points))))
    wrong = [text for _, text in results if text]
    assert not wrong, f"{len(wrong)} of {len(points)}:\n" + "\n".join(wrong[:5])
    assert sum(was_killed for was_killed, _ in results) >= 0.8 * len(points)


def _some(chance: random.Random, numbers: range) -> list[int]:
    return list(numbers) if IS_WHOLE else sorted(chance.sample(numbers, FEW))
