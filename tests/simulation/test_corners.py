"""Runs that are led by hand to one sharp corner each; `mutants.py` says what each of them guards."""

from contextlib import contextmanager
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from simulation.scene import (
    SESSION_FIRST,
    answer,
    by_rank,
    delegation,
    end_tool,
    has_asked,
    scene,
    start_child,
)
from simulation.single import entries, has, performed, poison, run, say

from steersman.actors.decisions import children
from steersman.actors.decisions.decision import Decision
from steersman.actors.kernel.mailbox import tell
from steersman.actors.kernel.supervisor import ChildSpec, Supervisor
from steersman.actors.kernel.system import ActorSystem
from steersman.journal import entries as e
from steersman.journal.entries import AllowanceGiven, JudgingBegun
from steersman.journal.record import SessionRecord, apply
from steersman.machines import protocol as m
from steersman.machines.delivery import Relation
from steersman.machines.disposition import Intent
from steersman.machines.errors import AdmissionRefused
from steersman.machines.machine import Refusal
from steersman.machines.policy import GoalPolicy
from steersman.simulator.happening import Appended, Durable, Passed, Performed, Sent, Told
from steersman.simulator.ports import Chances, Verdicts
from steersman.simulator.program import POISON, SimulatedProgram
from steersman.simulator.promises import what_is_held_stays
from steersman.simulator.schedule import SimulatedDispatcher


def kinds(made: SimulatedProgram) -> list[str]:
    """Name what was journalled, in order."""
    return [type(entry).__name__ for entry in entries(made)]


def work(made: SimulatedProgram, text: str = "work") -> None:
    """Say something to do, and step until the model is asked."""
    say(made, text)
    run(made, has_asked(made))


def with_kid(made: SimulatedProgram) -> None:
    """Step until the turn waits for the child `kid`, whose model is asked."""
    work(made)
    answer(made, start_child("kid"))
    run(made, has_asked(made, "s1-1"))


def at_a_tool(made: SimulatedProgram, tool: str = "write") -> None:
    """Step until a tool runs."""
    work(made)
    answer(made, (tool, {}))
    run(made, lambda: bool(made.ports.tools))


# Routing tables -----------------------------------------------------------------------------------


def test_a_child_that_takes_too_long_is_cancelled() -> None:
    """A child's time limit cancels it: that is what the delivery table says of a timeout."""
    with scene(plan={"delegation": delegation(timeout=20.0)}) as made:
        work(made)
        answer(made, start_child("kid"))
        run(made, has(made, e.ChildEnded))
        cancelled = entries(made, e.ChildCancelled)
        assert [(entry.child, entry.cause) for entry in cancelled] == [("kid", "timeout")]


@pytest.mark.parametrize("tool", ["read", "delegate", "dismiss"])
def test_a_patient_stop_ends_a_child_whose_call_it_has_overtaken(tool: str) -> None:
    """A call that was written down, and that the stop of the parent kept from running, has ended."""
    with scene(by_rank("", "children"), interrupt_at="boundary") as made:
        with_kid(made)
        answer(made, (tool, {"task": "more", "name": "grandkid"}), path="children/kid")
        run(made, lambda: bool(entries(made, e.ToolIntended, session="s1-1")))
        made.say(m.Interrupt(order=m.StopOrder(cause="bare_word")))
        run(made)
        assert made.record.turns["t1"].state == "interrupted"
        assert made.record.state == "idle"
        ends = entries(made, e.ToolEnded, session="s1-1")
        assert [(entry.tool, entry.end.status) for entry in ends] == [(tool, "killed")]


def test_talk_that_interrupts_leaves_the_goal() -> None:
    """A message that stops a goal's turn runs first; the goal is pursued after it."""
    with scene() as made:
        made.say(m.SetGoal(text="all tests pass"))
        run(made, has_asked(made))
        say(made, "instead")
        run(made, lambda: made.record.turn == "t2" and has_asked(made)())
        assert [entry.turn for entry in entries(made, e.Interrupted)] == ["t1"]
        assert made.record.goals.is_pursued


def test_a_result_without_a_waiting_turn_is_offered() -> None:
    """The result of a child in the background, when nothing runs, starts no turn."""
    with scene() as made:
        work(made)
        answer(made, start_child("kid", background=True))
        run(made, lambda: has_asked(made, "s1-1")() and made.record.turns["t1"].step == 2)
        answer(made)
        run(made, has(made, e.TurnEnded))
        answer(made, path="children/kid")
        run(made)
        assert [item.state for item in made.record.queue.live()] == ["offered"]
        assert made.record.turn == "t1"


def test_what_is_said_during_a_stop_runs_next() -> None:
    """A message that comes while the turn is being stopped is taken in, and runs after it."""
    with scene() as made:
        at_a_tool(made)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made, has(made, e.Interrupted))
        say(made, "instead")
        run(made)
        states = {item.text: item.state for item in made.record.queue.items.values()}
        assert states == {"work": "interrupted", "instead": "running"}


# Machines -----------------------------------------------------------------------------------------


def test_a_session_that_is_being_stopped_can_be_finalized() -> None:
    """The end is accepted while a tool of the stopped turn still dies."""
    with scene() as made:
        at_a_tool(made)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made, has(made, e.Interrupted))
        made.say(m.Finalize())
        run(made)
        assert made.record.state == "finalized"


def test_a_turn_whose_actor_fails_in_a_call_has_failed() -> None:
    """A turn ends in the journal in whatever state its actor died."""
    with scene() as made:
        work(made)
        poison(made, "turn")
        run(made)
        assert made.record.turns["t1"].state == "failed"
        assert made.record.state == "idle"


def test_an_interrupted_message_can_be_edited() -> None:
    """A person says an interrupted message again in other words before it is resumed."""
    with scene() as made:
        work(made)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        made.say(m.QueueChange(op="edit", number=1, said=m.Said(text="something else")))
        run(made)
        assert [item.text for item in made.record.queue.live()] == ["something else"]


def test_a_child_that_waits_for_room_can_be_ended() -> None:
    """A child that never began is cancelled when a person ends it."""
    with scene(plan={"delegation": delegation(max_children=1)}) as made:
        work(made)
        answer(made, start_child("kid", background=True), start_child("late", background=True))
        run(made, lambda: "late" in made.record.children)
        assert made.record.children["late"].state == "waiting"
        made.say(m.EndChild(child="late"))
        run(made, lambda: made.record.children["late"].state != "waiting")
        assert made.record.children["late"].state == "cancelled"


def test_a_decision_that_a_machine_refuses_is_refused_whole() -> None:
    """One entry that does not fit, and nothing of the decision is in the record or the journal."""
    with scene() as made:
        run(made, has(made, e.SessionOpened))
        said = e.Queued(
            item="m1", number=1, said=m.Said(text="hello"), routed=m.Routed(said_as="queue")
        )
        ended = e.TurnEnded(turn="t1", status="completed")
        started = e.TurnStarted(turn="t1", item="m1", number=1, epoch=1)
        decision = Decision(entries=(said, started, ended, ended))
        refusal = made.root.ledger.decide("queue", decision)
        assert isinstance(refusal, Refusal)
        assert (made.record.seq, made.record.queue.items) == (1, {})
        assert kinds(made) == ["SessionOpened"]


# The journal --------------------------------------------------------------------------------------


def test_a_spared_child_is_detached_in_the_journal() -> None:
    """A child whose agent is declared detached outlives the stop of its turn, in the background."""
    with scene(plan={"delegation": delegation(detached=("scout",))}) as made:
        work(made)
        answer(made, start_child("kid", agent="scout"))
        run(made, has_asked(made, "s1-1"))
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert [entry.child for entry in entries(made, e.ChildDetached)] == ["kid"]
        child = made.record.children["kid"]
        assert (child.state, child.relation) == ("working", Relation.BACKGROUND_CHILD)


def test_what_is_always_allowed_is_journalled() -> None:
    """A person answers `always`: the session remembers that, also after a crash."""
    with scene(can_ask=True) as made:
        work(made)
        answer(made, ("ask_read", {}))
        run(made, has(made, e.QuestionAsked))
        (asked,) = entries(made, e.QuestionAsked)
        made.say(m.Answer(question=asked.question, choice="always"))
        run(made, lambda: made.durable == made.record.seq and bool(made.ports.tools))
        assert entries(made, AllowanceGiven) == [AllowanceGiven(tool="ask_read", pattern="*")]
        assert not entries(made, e.ToolRefused)
        made.crash()
        made.restart()
        assert made.record.allowed == (("ask_read", "*"),)


def test_what_is_released_runs() -> None:
    """A held queue goes on when a person releases it."""
    with scene(busy_mode="queue") as made:
        work(made)
        say(made, "then")
        made.say(m.QueueChange(op="hold"))
        run(made, lambda: made.record.queue.state == "held")
        answer(made)
        run(made)
        assert made.record.turn == "t1"
        made.say(m.QueueChange(op="release"))
        run(made)
        assert made.record.turn == "t2"


def test_a_boundary_is_judged_once_that_is_journalled() -> None:
    """The judge of a goal begins with an entry, and gives its verdict."""
    with judged(("done",)) as made:
        assert [entry.turn for entry in entries(made, JudgingBegun)] == ["t1"]
        assert made.record.goals.goals["g1"].state == "achieved"


def judged(says: tuple[str, ...]) -> Any:
    """A scene in which the first turn of a goal has ended, and a gate and a judge have looked."""
    verdicts = Verdicts(says=says, fails=0.0, gate_fails=0.0)
    goals = GoalPolicy(gates=(("make", "check"),), backoff=0.0)
    made = scene(plan={"chances": Chances(verdicts=verdicts), "goals": goals})
    return after_a_turn(made)


@contextmanager
def after_a_turn(made: Any) -> Any:
    """Let the first turn of a goal end, and what follows from it happen."""
    with made as program:
        program.say(m.SetGoal(text="all tests pass"))
        run(program, has_asked(program))
        answer(program)
        run(program)
        yield program


# Effects ------------------------------------------------------------------------------------------

AWAITED: dict[type[Any], type[Any]] = {
    m.RunTool: e.ToolIntended,
    m.OpenChild: e.ChildStarted,
    m.RunGate: JudgingBegun,
    m.AskJudge: JudgingBegun,
}
"""The entry that has to be durable before an effect begins."""


def require_commits_first(made: SimulatedProgram, *wanted: type[Any]) -> None:
    """Require that these effects were performed, each after the newest entry that asks for it."""
    durable, asked, seen = 0, dict[type[Any], int](), set[type[Any]]()
    for happening in made.history:
        match happening:
            case Durable(seq=seq):
                durable = seq
            case Appended(seq=seq, entry=entry):
                asked[type(entry)] = seq
            case Performed(effect=effect) if type(effect) in AWAITED:
                seen.add(type(effect))
                seq = asked[AWAITED[type(effect)]]
                assert seq <= durable, f"{effect} began before entry {seq} was durable"
            case _:
                pass
    assert seen >= set(wanted)


def test_a_child_is_opened_after_the_commit() -> None:
    """A child's session is opened once the entry that starts the child is durable."""
    with scene() as made:
        with_kid(made)
        require_commits_first(made, m.OpenChild)


def test_a_tool_begins_after_the_commit() -> None:
    """A tool runs once the entry that says so is durable."""
    with scene() as made:
        at_a_tool(made)
        require_commits_first(made, m.RunTool)


def test_a_model_is_asked_during_the_commit_and_heard_after_it() -> None:
    """What it says before the entry of its call is durable is told after that, and lost with that."""
    with scene(SESSION_FIRST) as made:
        say(made, "work")
        run(made, lambda: bool(performed(made, m.CallModel)))
        call = made.ports.models["t1"]
        tell(call.reply_to, m.ModelText(turn="t1", epoch=call.effect.epoch, step=1, delta="Hi"))
        run(made)
        [asked] = [
            happening.seq
            for happening in made.history
            if isinstance(happening, Appended) and isinstance(happening.entry, e.ModelCalled)
        ]
        order = [
            "durable" if isinstance(happening, Durable) else type(happening).__name__
            for happening in made.history
            if (isinstance(happening, Durable) and happening.seq >= asked)
            or (isinstance(happening, Performed) and isinstance(happening.effect, m.CallModel))
            or (isinstance(happening, Passed) and isinstance(happening.fact, m.TextStreamed))
        ]
        assert order == ["Performed", "durable", "Passed"]


def test_a_message_is_acknowledged_after_the_commit() -> None:
    """A client gets the entry of its message once that is durable, however much is decided before."""
    with scene(SESSION_FIRST) as made:
        say(made, "hello")
        run(made)
        seq = next(
            happening.seq
            for happening in made.history
            if isinstance(happening, Appended) and isinstance(happening.entry, e.Queued)
        )
        order = [
            type(happening)
            for happening in made.history
            if isinstance(happening, Told | Durable) and happening.seq >= seq
        ]
        assert order[0] is Durable
        assert Told in order


def test_gates_and_judges_begin_after_the_commit() -> None:
    """Neither a gate nor a judge begins before the entry that says so is durable."""
    with judged(("done",)) as made:
        require_commits_first(made, m.RunGate, m.AskJudge)


def test_a_stop_before_the_commit_keeps_an_effect_from_beginning() -> None:
    """A tool call that was decided, and is not durable yet, does not begin when a stop comes first."""
    with scene(SESSION_FIRST) as made:
        work(made)
        answer(made, ("write", {}))
        run(made, has(made, e.ToolIntended))
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert not performed(made, m.RunTool)
        assert made.record.turns["t1"].state == "interrupted"


def test_a_recovery_is_a_stop_of_what_was_ordered_before() -> None:
    """A child that was ordered before the program died is cancelled from its start."""
    record = SessionRecord()
    opened = e.SessionOpened(session="s1", folder="/", agent="assistant", model="main", system="")
    late = e.ChildStarted(
        child="kid",
        session="s1-1",
        agent="scout",
        task="look",
        relation=Relation.SIDE_TALK,
        epoch=1,
    )
    journal = [
        opened,
        e.Queued(item="m1", number=1, said=m.Said(text="hello")),
        e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
        e.Recovered(cause="crash", items=1, last_active=8.0),
        late,
    ]
    for seq, entry in enumerate(journal, 1):
        apply(record, entry, seq, float(seq))
    child = record.children["kid"]
    assert child.epoch < child.stopped == record.epoch


# Stops --------------------------------------------------------------------------------------------


def test_what_a_stop_overtook_waits() -> None:
    """A message that was said before a stop, and comes after it, does not run."""
    with scene() as made:
        work(made)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop", utterance=2)))
        run(made)
        say(made, "late", utterance=1)
        run(made)
        assert made.record.turn == "t1"
        assert [item.text for item in made.record.queue.waiting()] == ["late"]


def test_a_side_talk_that_a_stop_overtakes_does_not_begin() -> None:
    """The stop comes before its session is opened: it reaches the talk, says so, and waits for it."""
    with scene(by_rank("", "queue")) as made:
        run(made)
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert not performed(made, m.OpenChild)
        assert [entry.why for entry in entries(made, e.ChildInterrupted)] == ["stop"]
        found = kinds(made)
        assert found.index("ChildInterrupted") < found.index("Stopped")
        made.say(m.ResumeQueue())
        run(made, has_asked(made, "s1-1"))
        answer(made, path="children/talk-1")
        run(made)
        assert made.record.queue.items["m1"].answer == "answer t1.1"


def test_a_side_talk_whose_question_is_withdrawn_does_not_begin() -> None:
    """A person takes the question back before the talk has begun: its model is never asked."""
    with scene(by_rank("", "queue")) as made:
        run(made)
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        made.say(m.QueueChange(op="withdraw", number=1))
        run(made)
        assert not has_asked(made, "s1-1")()
        assert made.record.children["talk-1"].state == "cancelled"


def test_a_side_talk_that_a_crash_overtakes_can_be_resumed() -> None:
    """Its question is durable and its session was never opened: it knows what was said before."""
    with scene(by_rank("", "queue", "writer")) as made:
        work(made)
        answer(made)
        run(made)
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        run(made, lambda: has(made, e.Offered)() and made.durable == made.record.seq)
        assert not performed(made, m.OpenChild)
        made.crash()
        made.restart()
        run(made)
        made.say(m.ResumeQueue())
        run(made, has_asked(made, "s1-1"))
        said = made.world.open["s1-1"].record.conversation
        assert [message.text for message in said] == ["work", "answer t1.1", "why?"]


def test_a_stop_that_is_taken_back_stops_no_later_child() -> None:
    """The turn goes on, and what it delegates from then on is not what the stop has reached."""
    with scene(interrupt_at="boundary") as made:
        at_a_tool(made)
        made.timeline.now += 1.0
        say(made, "stop", Intent.INTERRUPT_BARE)
        run(made, has(made, e.InterruptPlanned))
        made.say(m.TakeBack())
        run(made, has(made, e.InterruptCalledOff))
        end_tool(made, "t1.s1.c1")
        run(made, lambda: made.record.turns["t1"].step == 2)
        answer(made, start_child("kid", background=True))
        run(made)
        assert has_asked(made, "s1-1")()
        assert not has(made, e.ChildCancelled)()


def test_a_child_that_a_stop_overtakes_has_the_stop_as_its_cause() -> None:
    """A stop at the boundary reaches a child that was asked for before it, and begins after it."""
    ranks = by_rank("", "turn", "queue", "writer")
    with scene(ranks, interrupt_at="boundary") as made:
        work(made)
        answer(made, start_child("kid", background=True), ("write", {}))
        run(made, lambda: any(isinstance(happening, Sent) for happening in made.history))
        say(made, "stop", Intent.INTERRUPT_BARE)
        run(made)
        found = kinds(made)
        assert found.index("InterruptPlanned") < found.index("ChildStarted")
        stopped = [(entry.cause, entry.receipt) for entry in entries(made, e.ChildCancelled)]
        assert stopped == [("bare_word", "i1")]


def test_a_bare_stop_means_what_was_to_run_next_too() -> None:
    """A message that replaces the turn is held when a bare stop follows it."""
    with scene() as made:
        work(made)
        answer(made, start_child("kid", background=True), ("write", {}))
        run(made, lambda: bool(made.ports.tools) and has_asked(made, "s1-1")())
        say(made, "instead")
        run(made, lambda: len(made.record.queue.live()) == 2)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert made.record.turn == "t1"
        assert made.record.queue.state == "held"


# Lanes --------------------------------------------------------------------------------------------


def test_the_end_of_a_session_overtakes_what_waits() -> None:
    """An order to end is served before messages that came earlier: none of them is taken in."""
    with scene() as made:
        run(made)
        for number in range(5):
            say(made, f"words {number}", Intent.EXPLICIT_QUEUE)
        made.say(m.Finalize())
        run(made)
        assert not has(made, e.Queued)()


def test_a_steer_overtakes_what_waits() -> None:
    """A steer is taken in before ordinary messages that came earlier."""
    with scene(SESSION_FIRST) as made:
        work(made)
        for number in range(5):
            say(made, f"words {number}", Intent.EXPLICIT_QUEUE)
        say(made, "use tabs", Intent.EXPLICIT_STEER)
        run(made, lambda: len(entries(made, e.Queued)) == 7)
        assert entries(made, e.Queued)[1].said.text == "use tabs"


def test_news_of_a_commit_overtakes_what_waits() -> None:
    """Durable entries are published before earlier messages are handled."""
    with scene(by_rank("writer", "queue", "")) as made:
        run(made)
        say(made, "work")
        run(made, has(made, e.Queued))  # not written yet
        for number in range(5):
            say(made, f"words {number}", Intent.EXPLICIT_QUEUE)
        run(made, lambda: len(entries(made, e.Queued)) == 6)
        first, later = [
            at
            for at, happening in enumerate(made.history)
            if isinstance(happening, Appended) and isinstance(happening.entry, e.Queued)
        ][:2]
        told = [at for at, happening in enumerate(made.history) if isinstance(happening, Told)]
        assert any(first < at < later for at in told)


def test_a_stop_overtakes_what_waits() -> None:
    """A stop is served before ordinary messages that came earlier."""
    with scene(by_rank("queue", "")) as made:
        work(made)
        for number in range(5):
            say(made, f"words {number}", Intent.EXPLICIT_QUEUE)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        found = kinds(made)
        assert found.index("InterruptRequested") < found.index("Queued", 2)


# Supervision --------------------------------------------------------------------------------------


def test_a_queue_that_fails_leaves_the_turn_alone() -> None:
    """One for one: the turn goes on to its end while the queue is started again."""
    with scene() as made:
        work(made)
        turn = made.actor("turn")
        poison(made, "queue")
        run(made)
        assert made.actor("turn") is turn
        answer(made)
        run(made)
        assert made.record.turns["t1"].state == "completed"


def test_a_turn_that_fails_is_not_started_again() -> None:
    """A turn's actor is temporary: its failure ends the turn, and the next one has another actor."""
    with scene() as made:
        work(made)
        poison(made, "turn")
        run(made)
        assert made.actor("turn") is None


class Slow(Supervisor):
    """A supervisor of two, of which all go when one fails; `started` notes each start."""

    strategy = "one_for_all"

    def __init__(self, system: ActorSystem, started: list[str]) -> None:
        super().__init__(system)
        self.started = started

    def on_start(self) -> None:
        """Start the two."""
        for name in ("a", "b"):
            self.start_child(ChildSpec(name=name, start=lambda name=name: self._child(name)))  # type: ignore[misc]

    def _child(self, name: str) -> Any:
        self.started.append(name)
        return Supervisor.start(self.system)

    def on_receive(self, message: Any) -> Any:
        """Supervise."""
        if isinstance(message, m.Down):
            self.handle_down(message)


def test_no_child_restarts_before_all_stopping_ones_are_down() -> None:
    """A sibling that must go is awaited before the one that failed comes back."""
    dispatcher, started = SimulatedDispatcher(), list[str]()
    system = ActorSystem(dispatcher, lambda: 0.0)
    ref = Slow.start(system, started)
    actors = {actor.name: actor for actor in system.living()}
    actors["a"].actor_ref.tell(POISON)
    while dispatcher.ready:
        names = [mailbox.owner.name for mailbox in dispatcher.ready]
        dispatcher.run(min(range(len(names)), key=lambda at: names[at] == "b"), 1)
        is_up = not actors["b"].mailbox.is_suspended and system.living().count(actors["b"])
        assert not (is_up and len(started) > 2), "`a` is back while `b` has not gone"
    assert started == ["a", "b", "a", "b"]
    ref.stop(block=False)


def test_a_child_whose_actor_fails_goes_on_from_its_journal() -> None:
    """A child's session is transient: it is started again, and gives its result."""
    with scene() as made:
        with_kid(made)
        child = made.actor("children/kid")
        poison(made, "children/kid")
        run(made, lambda: made.actor("children/kid") not in (None, child))
        run(made)
        assert made.actor("children/kid/turn") is not None
        answer(made, path="children/kid")
        run(made)
        assert made.record.children["kid"].state == "completed"


# Bounds -------------------------------------------------------------------------------------------


def test_a_model_call_is_reserved_before_it_is_made() -> None:
    """While the model is asked, what the call may take is set apart from the limits."""
    with scene() as made:
        work(made)
        assert [usage.tokens > 0 for usage in made.environment.account.reserved.values()] == [True]
        answer(made)
        run(made)
        assert not made.environment.account.reserved


def test_the_name_of_a_child_that_is_just_ending_is_not_given_again() -> None:
    """While the session of the last bearer is still open, a new child gets the name with a number."""
    with scene() as made:
        with_kid(made)
        answer(made, path="children/kid")
        run(made, has(made, e.ChildEnded))
        turn = made.record.turns["t1"]
        order = m.Delegate(
            turn="t1", epoch=turn.epoch, call="c9", arguments={"task": "again", "name": "kid"}
        )
        found = children.delegate(made.record, order, ("kid",), made.environment)
        assert [getattr(entry, "child", "") for entry in found.entries] == ["kid-2"]


def test_the_name_of_a_child_whose_result_is_on_its_way_is_not_given_again() -> None:
    """Its result is told from that of a new child by the name: they would be taken for one."""
    with scene() as made:
        with_kid(made)
        answer(made, path="children/kid")
        run(made, has(made, e.ChildEnded))
        record, turn = made.record, made.record.turns["t1"]
        order = m.Delegate(
            turn="t1", epoch=turn.epoch, call="c9", arguments={"task": "again", "name": "kid"}
        )

        def named(is_returned: bool) -> str:
            kid = replace(record.children["kid"], is_returned=is_returned)
            known = replace(record, children={"kid": kid})
            found = children.delegate(known, order, (), made.environment)
            return next(entry.child for entry in found.entries if isinstance(entry, e.ChildStarted))

        assert (named(is_returned=False), named(is_returned=True)) == ("kid-2", "kid")


def test_a_steer_of_a_turn_that_has_ended_is_a_message() -> None:
    """A steer that no boundary took in waits as a message of its own."""
    with scene() as made:
        work(made)
        say(made, "use tabs", Intent.EXPLICIT_STEER)
        run(made, lambda: len(made.record.queue.live()) == 2)
        poison(made, "turn")
        run(made, lambda: made.record.turn == "t2")
        steer = made.record.queue.items["m2"]
        assert (steer.state, steer.turn, steer.routed.said_as) == ("running", "t2", "queue")


def test_a_steer_stays_with_the_turn_that_was_interrupted() -> None:
    """A steer that no boundary took in enters when the turn goes on, with the words that resume it."""
    with scene() as made:
        work(made)
        say(made, "use tabs", Intent.EXPLICIT_STEER)
        run(made, lambda: len(made.record.queue.live()) == 2)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        waiting = made.record.queue.items["m2"]
        assert (waiting.state, waiting.for_turn) == ("pending", "t1")
        made.say(m.ResumeQueue())
        run(made, has_asked(made))
        steer = made.record.queue.items["m2"]
        assert (steer.state, steer.turn) == ("steered", "t2")
        assert "use tabs" in made.record.conversation[-1].text


@pytest.mark.parametrize(("op", "state"), [("steer", "running"), ("keep", "pending")])
def test_an_answer_that_missed_its_turn_waits_for_a_persons_word(
    op: Literal["steer", "keep"], state: str
) -> None:
    """It is offered again: a hold does not concern it, a steer lets it run, and keeping it does not."""
    with scene(after_interrupt="hold") as made:
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        run(made, has_asked(made, "s1-1"))
        answer(made, path="children/talk-1")
        run(made, has(made, e.OfferAnswered))
        work(made)
        made.say(m.QueueChange(op="steer", number=1))
        run(made, has(made, e.SteerAddressed))
        poison(made, "turn")
        run(made)
        assert made.record.queue.items["m1"].state == "offered"
        work(made)
        say(made, "then", Intent.EXPLICIT_QUEUE)
        run(made, lambda: made.record.queue.waiting_count == 1)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert made.record.queue.state == "held"
        made.say(m.QueueChange(op=op, number=1))
        run(made)
        assert made.record.queue.items["m1"].state == state
        what_is_held_stays(made.history)


@pytest.mark.parametrize("number", [None, 1])
def test_a_turn_that_a_message_replaced_is_resumed(number: int | None) -> None:
    """It is kept, apart from what waits, with its steer; by its number, or where nothing else waits."""
    with scene() as made:
        work(made)
        say(made, "use tabs", Intent.EXPLICIT_STEER)
        run(made, lambda: len(made.record.queue.live()) == 2)
        say(made, "stop, use spaces", Intent.EXPLICIT_INTERRUPT)
        run(made, lambda: made.record.turn == "t2" and has_asked(made)())
        answer(made)
        run(made)
        queue = made.record.queue
        assert ([item.id for item in queue.superseded()], queue.live()) == (["m1"], [])
        made.say(m.ResumeQueue(number=number))
        run(made, lambda: made.record.turn == "t3")
        states = {item.text: item.state for item in made.record.queue.items.values()}
        assert states["work"] == "running"
        assert states["use tabs"] == "steered"


def test_a_mailbox_is_bounded() -> None:
    """What comes from outside is refused when a thousand messages wait already."""
    with scene() as made:
        message = m.UserMessage(type="normal", said=m.Said(text="words"), intent=Intent.CONVERSE)
        for _ in range(1_000):
            made.session.tell(message)
        assert is_refused(made, message)


def is_refused(made: SimulatedProgram, message: m.UserMessage) -> bool:
    """Whether the mailbox of the session takes a message in."""
    try:
        made.session.tell(message)
    except AdmissionRefused:
        return True
    return False


# Known faults -------------------------------------------------------------------------------------


def test_a_message_of_a_goal_waits_behind_those_of_people() -> None:
    """A goal that is set over a held queue, just before a message runs, does not pass what waits."""
    with scene(by_rank("", "children", "goal", "queue", "turn"), is_auto_queue=True) as made:
        work(made)
        say(made, "then")
        made.say(m.QueueChange(op="hold"))
        run(made, lambda: made.record.queue.state == "held")
        answer(made)
        run(made)
        made.say(m.SetGoal(text="all tests pass"))
        say(made, "fresh")
        run(made, lambda: made.record.turn == "t2" and has_asked(made)())
        made.say(m.QueueChange(op="release"))
        run(made)
        answer(made)
        run(made, lambda: made.record.turn == "t3")
        item = made.record.queue.items[made.record.turns["t3"].item]
        assert item.text == "then"


def test_a_result_for_a_turn_that_has_just_failed_is_not_lost() -> None:
    """A child ends between the death of its turn's actor and the news of that: its result waits."""
    child = ("children/kid/turn", "children/kid/queue", "children/kid", "writer s1-1")
    with scene(by_rank("turn", *child, "children", "queue")) as made:
        with_kid(made)
        poison(made, "turn")
        answer(made, path="children/kid")
        run(made)
        assert made.record.turns["t1"].state == "failed"
        assert made.record.children["kid"].is_returned


def test_a_resumed_child_that_was_done_can_be_stopped_before_it_opens() -> None:
    """Its parent did not learn of its result in a crash, resumes it, and stops it at once."""
    child = ("children/kid/turn", "children/kid/queue", "children/kid")
    with scene(by_rank(*child)) as made:
        with_kid(made)
        run(made, lambda: made.durable == made.record.seq)
        answer(made, path="children/kid")
        kid = made.world.open["s1-1"]
        run(made, lambda: kid.record.state == "idle" and kid.durable == kid.record.seq)
        made.crash()
        made.restart()
        run(made)
        made.say(m.ResumeQueue())
        run(made, lambda: len(performed(made, m.OpenChild)) == 2)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        assert made.record.state == "idle"
        assert made.record.children["kid"].state != "stopping"


def test_a_resumed_child_whose_session_was_about_to_end_is_over() -> None:
    """A person ended it, and only its own session kept that over a crash: it ends, and makes room."""
    with scene(by_rank("writer s1-1"), plan={"delegation": delegation(max_children=1)}) as made:
        run(made)
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        run(made, has_asked(made, "s1-1"))
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made)
        made.say(m.EndChild(child="talk-1"))
        talk = made.world.open["s1-1"]
        run(made, lambda: talk.record.state == "finalizing" and talk.durable == talk.record.seq)
        made.crash()
        made.restart()
        run(made)
        assert made.record.children["talk-1"].state == "interrupted"
        made.say(m.ResumeQueue())
        run(made)
        assert made.record.children["talk-1"].state == "cancelled"
        work(made)
        answer(made, start_child("kid"))
        run(made, has_asked(made, "s1-2"))
        assert has_asked(made, "s1-2")()


def test_a_side_talk_does_not_begin_after_the_session_is_left() -> None:
    """The question is still on its way to the queue when the session is suspended."""
    with scene(by_rank("", "children")) as made:
        run(made)
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        made.say(m.Suspend())
        run(made)
        assert made.record.state == "suspended"
        assert not any(child.is_at_work for child in made.record.children.values())


def test_a_session_whose_journal_breaks_as_it_is_left_comes_to_rest() -> None:
    """The entry of the end cannot be written, and there is no endless retry."""
    with scene(by_rank("writer")) as made:
        run(made)
        made.writer.failures[made.root.id] = "lost"
        made.say(m.Suspend())
        assert not all(made.step() for _ in range(1_000)), "no quiet after 1,000 steps"
        assert not made.system.refusals, "what a broken journal refuses is no fault of an actor"
