"""A family of runs with goals: people set, pause and drop them, judges judge, the program dies."""

from typing import Any

from msgspec.structs import replace

from ..journal import entries as e
from ..journal.record import SessionRecord, apply
from ..machines import protocol as m
from ..machines.disposition import Intent
from ..machines.policy import GoalPolicy, Limits, Policy
from .choices import Seed, chooser_of, dice_of
from .happening import Appended, Happening, Performed, Started, Uttered
from .lanes import LaneWatch
from .ports import PATIENCE, Chances, Verdicts
from .program import SimulatedProgram
from .promises import (
    check_history,
    check_liveness,
    check_replay,
    check_state,
    check_stops_are_prompt,
)
from .session import SimulationPlan

MOST_STEPS = 6_000
GATE = (("make", "check"),)
SAYS = (
    ("continue",),
    ("continue", "wait"),
    ("continue", "continue", "continue", "done"),
    ("continue", "wait", "done", "impossible", "prose", "both"),
    ("prose",),
)


class GoalScenario:
    """A run with goals. Everything about it follows from `seed`; `changes` are fields of its plan."""

    def __init__(self, seed: Seed, **changes: Any) -> None:
        self.dice = dice = dice_of(seed)
        is_calm = dice.random() < 0.4  # a person looks on while an agent says and does the same
        chooser = chooser_of(seed, dice)
        policy = Policy(
            busy_mode=dice.choice(("interrupt", "steer", "queue")),
            after_interrupt=dice.choice(("hold", "continue")),
            max_queue_size=3,
        )
        goals = GoalPolicy(
            max_turns=8 if is_calm else dice.choice((1, 2, 4)),
            max_tokens=None if is_calm else dice.choice((None, None, 30)),
            max_minutes=None if is_calm else dice.choice((None, None, 0.1)),
            gates=dice.choice(((), (), GATE, (*GATE, ("true",)))),
            gates_decide=dice.random() < 0.2,
            max_judge_failures=dice.choice((0, 1, 3)),
            max_failed_turns=dice.choice((0, 2, 3)),
            backoff=dice.choice((0.0, 1.0)),
            max_wait=10.0,
        )
        verdicts = Verdicts(
            says=dice.choice(SAYS[:2] if is_calm else SAYS),
            fails=0.0 if is_calm else dice.choice((0.0, 0.2, 1.0)),
            gate_fails=dice.choice((0.0, 0.5)),
            longest=dice.choice((0.1, 3.0)),
        )
        chances = Chances(
            calls=0.6 if is_calm else dice.choice((0.0, 0.4)),
            model_fails=0.0 if is_calm else dice.choice((0.0, 0.05, 0.5)),
            longest=dice.choice((0.5, 3.0)),
            verdicts=verdicts,
            repeats=0.9 if is_calm else dice.choice((0.0, 0.0, 0.8)),
        )
        waits = chances.longest == 3.0
        plan = SimulationPlan(
            policy=policy,
            chances=replace(chances, tells_when=waits),
            limits=Limits(wait_minutes=PATIENCE if waits else 0.0),
            crash_at=dice.randrange(3, 60) if dice.random() < 0.3 else None,
            crash_side=dice.choice(("before", "after")),
            max_steps=20 if is_calm else 3,
            longest_batch=dice.choice((1, 8)),
            haste=dice.choice((0.05, 1.0)),
            goals=goals,
            watch=LaneWatch(),
        )
        self.plan = replace(plan, **changes)
        self.program = SimulatedProgram(self.plan, dice, chooser)
        self.left = 6 if is_calm else dice.choice((2, 6, 14))
        self.pauses = (10.0, 30.0, 100.0) if is_calm else (0.0, 1.0, 5.0, 40.0)
        self.said = 0
        self.crash_step = dice.randrange(5, 250) if dice.random() < 0.2 else -1
        self.poison_step = dice.randrange(5, 150) if dice.random() < 0.1 else -1
        self.is_poisoned = False
        self.program.timeline.after(0.0, self._speak, "user")

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise on the way."""
        try:
            self._play()
        finally:
            self.program.close()
        return self.program

    def _play(self) -> None:
        program = self.program
        for step in range(MOST_STEPS):
            if not program.step():
                break
            check_state(program, self.is_poisoned)
            if step == self.crash_step and program.is_running:
                program.crash()
            if step == self.poison_step and program.is_running:
                self.is_poisoned = True
                program.poison()
            if program.is_running and program.record.state == "suspended":
                program.crash()
            if not program.is_running:
                program.restart()
            check_record(program.record)
        else:
            raise AssertionError(f"no quiet after {MOST_STEPS} steps")
        check_history(program.history)
        check_goals(program.history)
        check_stops_are_prompt(program, self.plan.chances)
        check_liveness(program)
        check_end(program)
        check_replay(program)

    # The person -----------------------------------------------------------------------------------

    def _speak(self) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        self.said += 1
        self.program.utter(self._thing())
        pause = self.dice.choice(self.pauses) * self.dice.random()
        self.program.timeline.after(pause, self._speak, "user")

    def _thing(self) -> Any:
        dice = self.dice.random()
        if self.said == 1 or dice < 0.25:
            return m.SetGoal(
                text=f"goal {self.said}",
                max_turns=self.dice.choice((None, 1, 3)) if self.said > 1 else None,
                is_next=self.said > 1 and self.dice.random() < 0.5,
            )
        if dice < 0.5:
            op: Any = self.dice.choice(("pause", "resume", "resume", "clear"))
            return m.ChangeGoal(op=op)
        if dice < 0.75:
            intent = self.dice.choice(
                (
                    Intent.CONVERSE,
                    Intent.CONVERSE,
                    Intent.INTERRUPT_BARE,
                    Intent.INTERRUPT_MORE,
                    Intent.EXPLICIT_QUEUE,
                )
            )
            kind: Any = "interrupt" if intent.startswith("interrupt") else "normal"
            text = f"words {self.said}"
            then = text if intent == Intent.INTERRUPT_MORE else ""
            return m.UserMessage(
                type=kind,
                said=m.Said(text=text, user="ann", client_id=f"c{self.said}"),
                intent=intent,
                then=then,
            )
        if dice < 0.85:
            return m.Interrupt(order=m.StopOrder(cause="stop"))
        if dice < 0.95:
            ops: Any = self.dice.choice(("hold", "release", "clear", "withdraw"))
            return self.dice.choice((m.QueueChange(op=ops), m.ResumeQueue()))
        return m.Suspend() if dice < 0.99 else m.Finalize(cause="user")


# The promises -------------------------------------------------------------------------------------


def check_record(record: SessionRecord) -> None:
    """Spent plus reserved is within the budget; a goal's message waits only for a goal that is active."""
    goals = record.goals
    for goal in goals.goals.values():
        assert goal.turns_used + bool(goal.reserved) <= goal.max_turns, f"{goal} is overdrawn"
    pursued = [goal for goal in goals.goals.values() if goal.is_pursued]
    assert len(pursued) <= 1, f"two goals at a time: {pursued}"
    waiting = [one for one in record.queue.pending() if one.goal]
    assert len(waiting) <= 1, f"two continuations wait: {waiting}"
    for item in waiting:
        goal = goals.goals[item.goal]
        assert goal.state == "active", f"{item} waits for {goal}"
        chosen = record.queue.next_item()
        others = [item for item in record.queue.waiting() if not item.goal]
        is_ahead = chosen is item and others and record.queue.state == "open"
        assert not is_ahead, f"{item} goes before {others}"


def check_goals(history: list[Happening]) -> None:
    """What is read off the journal as it grew, entry by entry, also what was lost in a crash."""
    record = SessionRecord()
    kept: list[tuple[int, e.Entry]] = []
    for happening in history:
        match happening:
            case Started(seq=seq):
                del kept[seq:]
                record = SessionRecord()
                for number, entry in kept:
                    apply(record, entry, number, 0.0)
            case Appended(seq=seq, entry=entry):
                before = {name: goal.turns_total for name, goal in record.goals.goals.items()}
                apply(record, entry, seq, 0.0)
                kept.append((seq, entry))
                check_record(record)
                for name, total in before.items():
                    goal = record.goals.goals.get(name)
                    assert goal is None or goal.turns_total >= total, f"{name} got turns back"
            case _:
                pass
    a_boundary_is_judged_once([entry for _, entry in kept])
    nothing_goes_on_after_a_stop(history)
    nothing_is_begun_for_a_stopped_goal(history)
    a_stop_stops_what_was_set_before_it(history, record)


def a_boundary_is_judged_once(journal: list[e.Entry]) -> None:
    """Each turn has one verdict at most, and each verdict was begun."""
    judged, begun = set[tuple[str, str]](), set[tuple[str, str]]()
    for entry in journal:
        match entry:
            case e.JudgingBegun(goal=goal, turn=turn):
                begun.add((goal, turn))
            case e.GoalJudged(goal=goal, turn=turn):
                assert (goal, turn) in begun, f"{entry} out of nothing"
                assert (goal, turn) not in judged, f"{turn} is judged twice for {goal}"
                judged.add((goal, turn))
            case _:
                pass


def nothing_goes_on_after_a_stop(history: list[Happening]) -> None:
    """After the pause of a goal no judge is asked, and no turn of it starts, until a command."""
    stopped = set[str]()
    tagged = dict[str, str]()
    for happening in history:
        match happening:
            case Started():
                stopped.clear()
            case Appended(seq=_, entry=e.Queued(item=item, goal=goal)):
                tagged[item] = goal
                assert not goal or goal not in stopped, f"{happening} after its pause"
            case Appended(seq=_, entry=e.GoalPaused(goal=goal) | e.GoalCleared(goal=goal)):
                stopped.add(goal)
            case Appended(seq=_, entry=e.GoalResumed(goal=goal) | e.GoalBegun(goal=goal)):
                stopped.discard(goal)
            case Performed(effect=m.AskJudge(goal=goal) | m.RunGate(goal=goal)):
                assert goal not in stopped, f"{happening} after its pause"
            case Appended(seq=_, entry=e.TurnStarted(item=item, resumes="")):
                assert tagged.get(item, "") not in stopped, f"{happening} after its pause"
            case _:
                pass


def nothing_is_begun_for_a_stopped_goal(history: list[Happening]) -> None:
    """After a stop no turn starts for the goal, none of its messages waits, and no judge is asked."""
    goal, is_stopped, tagged = "", False, dict[str, str]()
    for happening in history:
        match happening:
            case Started():
                is_stopped = False
            case Appended(
                seq=_, entry=e.GoalSet(is_next=False) | e.GoalBegun() | e.GoalResumed() as entry
            ):
                goal, is_stopped = entry.goal, False
            case Appended(seq=_, entry=e.InterruptRequested(cause="stop" | "bare_word" | "new")):
                is_stopped = True
            case Appended(seq=_, entry=e.Queued(item=item, goal=owner)):
                tagged[item] = owner
                assert not owner or not is_stopped or owner != goal, (
                    f"{happening} though it was stopped"
                )
            case Appended(seq=_, entry=e.TurnStarted(item=item, resumes="")) if tagged.get(item):
                assert not is_stopped or tagged[item] != goal, f"{happening} though it was stopped"
            case Performed(effect=m.AskJudge() | m.RunGate() | m.AwaitCondition() as effect):
                assert not is_stopped or effect.goal != goal, f"{happening} though it was stopped"
            case _:
                pass


def a_stop_stops_what_was_set_before_it(history: list[Happening], record: SessionRecord) -> None:
    """What is pursued in the end was set, or let go on, after the last stop that a person said."""
    set_since, is_resumed = set[str](), False
    entries = [happening.entry for happening in history if isinstance(happening, Appended)]
    talk = {entry.said.client_id for entry in entries if isinstance(entry, e.Queued)}
    for one in history:
        match one:
            case Uttered(message=m.UserMessage(said=m.Said(client_id=key))) if key in talk:
                pass  # at rest every word is a message
            case Uttered(message=m.SetGoal(text=text)):
                set_since.add(text)
            case Uttered(message=m.ChangeGoal(op="resume")):
                is_resumed = True
            case Uttered(message=m.Interrupt() | m.UserMessage(intent=Intent.INTERRUPT_BARE)):
                set_since, is_resumed = set[str](), False
            case _:
                pass
    goal = record.goals.goal
    if goal is not None and goal.is_pursued and not is_resumed:
        assert goal.text in set_since, f"{goal} outlives a stop"


def check_end(program: SimulatedProgram) -> None:
    """A goal stops: at rest none is pursued, unless what is held stands before it."""
    record = program.record
    goals = record.goals
    is_behind = bool(record.queue.waiting())
    assert not goals.is_pursued or is_behind, f"{goals.goal} never stops"
    assert not program.ports.judging.begun, "a judge or gate is left"
