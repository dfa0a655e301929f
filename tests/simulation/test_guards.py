"""Guards that random runs come to too rarely, each led to or built by hand; see `mutants.py`."""

from types import SimpleNamespace
from typing import Any

from simulation.scene import answer, by_rank, end_tool, has_asked, scene, start_child
from simulation.single import entries, has, performed, run, say
from simulation.test_corners import at_a_tool, kinds, work

from steersman.actors import gate
from steersman.actors.decisions.decision import Decision
from steersman.journal import entries as e
from steersman.journal.child_record import ChildRecord
from steersman.journal.record import SessionRecord, apply
from steersman.machines import protocol as m
from steersman.machines.conversation import Usage
from steersman.machines.delivery import Cause, Relation
from steersman.machines.disposition import Intent

# The gate -----------------------------------------------------------------------------------------


def _level(name: str, session: str, epoch: int, stopped: int) -> Any:
    """Return what knows a parent that has one child, ordered and stopped at these epochs."""
    child = ChildRecord(
        name=name,
        session=session,
        agent="",
        task="",
        relation=Relation.FOREGROUND_CHILD,
        epoch=epoch,
        stopped=stopped,
    )
    record = SessionRecord(state="busy", children={name: child})
    return lambda: SimpleNamespace(record=record, broken="")


def test_a_stop_of_a_grandparent_voids_what_was_ordered_before() -> None:
    """Each ancestor's stop counts, not only the parent's."""
    for stopped in (0, 5):
        above = gate.Ancestors(_level("kid", "s1-1", 3, stopped), "kid", "s1-1", gate.ROOT)
        here = gate.Ancestors(_level("grandkid", "s1-1-1", 2, 0), "grandkid", "s1-1-1", above)
        assert here.is_stopped((2, 3)) == bool(stopped)


def test_nothing_passes_the_gate_that_nobody_waits_for() -> None:
    """Of a turn, goal or revert that is not there, or over, no effect begins."""
    record = SessionRecord()
    condition: Any = None
    effects = (
        m.RunTool(turn="t1", epoch=1, call="t1.w1", tool="command", arguments={}, step="a"),
        m.AwaitCondition(goal="g1", name="wait 1", condition=condition, limit=1.0),
        m.GoalTimer(goal="g1", name="pause 1", seconds=1.0),
        m.RestoreFiles(id="r1", scope="turn"),
    )
    admitted = [effect for effect in effects if gate.admits(record, gate.ROOT, effect)]
    assert admitted == []


# The ledger ---------------------------------------------------------------------------------------


def test_what_runs_is_stopped_at_a_broken_store_too() -> None:
    """A stop needs no journal: nothing that is urgent waits for one."""
    with scene() as made:
        at_a_tool(made)
        made.root.ledger.broken = "the disk is gone"
        stop = m.StopTool(turn="t1", epoch=1, call="t1.s1.c1")
        made.root.ledger.decide("turn", Decision(urgent=(stop,)))
        assert [one.call for one in performed(made, m.StopTool)] == ["t1.s1.c1"]


def test_no_fact_overtakes_what_was_told_before_it() -> None:
    """What passes by is told after everything durable that waits to be told."""
    with scene() as made:
        told: list[str] = []
        ledger: Any = made.root.ledger
        ledger._observe = lambda fact: told.append("fact")
        ledger._unpublished = [lambda: told.append("entry")]
        ledger.publish(m.Notice(text="slow today"))
        ledger._publish_all()
        assert told == ["entry", "fact"]


def test_an_answer_overtakes_what_waits() -> None:
    """A person's answer is served before ordinary messages that came earlier."""
    with scene(by_rank("turn", ""), can_ask=True) as made:
        work(made)
        answer(made, ("ask_read", {}))
        run(made, has(made, e.QuestionAsked))
        (asked,) = entries(made, e.QuestionAsked)
        for number in range(5):
            say(made, f"words {number}", Intent.EXPLICIT_QUEUE)
        made.say(m.Answer(question=asked.question, choice="allow"))
        run(made)
        found = kinds(made)
        assert found.index("QuestionAnswered") < found.index("Queued", 2)


# Stops --------------------------------------------------------------------------------------------


def test_a_stop_is_not_answered_while_an_earlier_one_works() -> None:
    """The parent that stops a session again hears of it when the tool of the turn is dead."""
    with scene() as made:
        at_a_tool(made)
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made, has(made, e.Interrupted))
        made.say(m.Interrupt(order=m.StopOrder(cause=Cause.PARENT, epoch=7)))
        run(made)
        found = kinds(made)
        stopped = [entry.order for entry in entries(made, e.Stopped)]
        assert stopped == [0, 7]
        assert found.index("ToolEnded") < found.index("Stopped")


def test_a_planned_stop_remembers_what_it_reached() -> None:
    """Its receipt names the children that it reached when it was planned, and then the turn."""
    with scene(interrupt_at="boundary") as made:
        work(made)
        answer(made, start_child("kid", background=True), ("write", {}))
        run(made, lambda: has_asked(made, "s1-1")() and bool(made.ports.tools))
        made.say(m.Interrupt(order=m.StopOrder(cause=Cause.BARE_WORD)))
        run(made, has(made, e.InterruptPlanned))
        end_tool(made, "t1.s1.c2")
        run(made)
        reached = made.record.stops["i1"].reaches
        assert {Relation.SELF, Relation.BACKGROUND_CHILD} <= set(reached)


def _stopped(*utterances: int) -> SessionRecord:
    record = SessionRecord(state="idle", seq=1)
    for seq, utterance in enumerate(utterances, 2):
        order = m.StopOrder(cause="stop", utterance=utterance)
        apply(record, e.StopNoted(order=order, reaches=(Relation.SELF,)), seq, 0.0)
    return record


def test_an_older_stop_takes_nothing_back() -> None:
    """What the newest stop has overtaken stays overtaken, in whatever order stops come."""
    assert _stopped(5, 3).overtaken == 5


def test_the_receipts_of_many_stops_are_kept() -> None:
    """A client asks for a receipt some time after the stop."""
    with scene() as made:
        for number in range(10):
            say(made, f"work {number}")
            run(made, has_asked(made))
            made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
            run(made)
        assert list(made.record.stops) == [f"i{number}" for number in range(1, 11)]


def test_what_a_late_answer_used_is_counted() -> None:
    """It was paid for, though nobody waits for it any more."""
    record = SessionRecord(state="busy", seq=1)
    late = e.LateResult(turn="t1", what="model", usage=Usage(input=5, output=2))
    apply(record, late, 2, 0.0)
    assert (record.usage.input, record.usage.output) == (5, 2)


# Questions ----------------------------------------------------------------------------------------


def test_an_answer_reaches_the_child_that_asked() -> None:
    """The child `a-b` and the child `b` of the child `a` ask each a question of its own."""
    with scene(can_ask=True) as made:
        work(made)
        answer(made, start_child("a-b"), start_child("a"))
        run(made, has_asked(made, "s1-1", "s1-2"))
        answer(made, start_child("b"), path="children/a")
        run(made, has_asked(made, "s1-2-1"))
        answer(made, ("ask_read", {}), path="children/a-b")
        answer(made, ("ask_read", {}), path="children/a/children/b")
        run(made)
        asked = {
            session: entry.question
            for session in ("s1-1", "s1-2-1")
            for entry in entries(made, e.QuestionAsked, session=session)
        }
        assert len(set(asked.values())) == 2
        for session, question in asked.items():
            made.say(m.Answer(question=question, choice="allow"))
            run(made)
            (answered,) = entries(made, e.QuestionAnswered, session=session)
            assert answered.question == question
