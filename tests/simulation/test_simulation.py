"""Random people, random schedules, random crashes: every promise holds in all of them."""

import inspect
from random import Random

import pytest
from simulation.faults import FAULTS, NO_LAST_WORD, WITHIN, run_with
from simulation.planting import planted_all
from simulation.scene import by_rank
from simulation.single import TALK, entries, finish, has, run, say

from steersman.journal import entries as e
from steersman.machines import machine
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator import promises
from steersman.simulator.elsewhere import ElsewhereScenario
from steersman.simulator.goals import GoalScenario
from steersman.simulator.loops import LoopScenario
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.scenario import Scenario
from steersman.simulator.session import SimulationPlan

SEEDS = 2_000
FOUND = {
    22775: "a child is stopped just as its turn ends, and a steer that missed that waits there",
    6869: "a child ends as it is told to go on without its parent",
    5651: "a child supervisor fails before it has let go of a child that ended",
    20087: "a child supervisor fails while its children work: nobody lets go of them",
    3961: "two children return while their parent asks what came in",
    2039: "a child takes in again what it had taken in before it was interrupted",
    2458: "a child says that it missed a steer, and then takes it in",
    4049: "talk comes while a child is asked for that has not begun",
    898: "talk that waits for a child lets a tool of the same answer begin, too",
    2106: "the same stop is asked for twice before it is journalled",
    2265: "a child that was stopped before it began is resumed",
    3708: "a session's journal breaks while its children work",
    771: "a child that failed with its supervisor is ended",
    1403: "a turn fails while its child works",
    4525: "a turn fails while it is being stopped with its child",
    620: "a message is moved while a turn is being interrupted",
    55: "a child that is stopped with its parent is cut off with its supervisor",
    1902: "a planned stop spares a child, and the turn waits for its call",
    489: "a model hands back what was handed on to its child",
    756: "two stops of children cross, and get one receipt",
    1083: "a side talk that was asked for before two cancels begins after them",
    2415: "a turn begins while children alone are being stopped",
    67: "a name is wanted again while the child that bore it is just ending",
    71: "a stopped child goes on by itself with what its own child found",
    141: "a side talk begins while a stop is on its way to the turn",
    1549261119: "a steer that was put aside is held with the rest, and begins nothing by itself",
    269: "a stop reaches children that wait for room, and never says that all have stopped",
    275: "the program dies with a child at work and nothing in the queue",
    293: "what is offered is edited",
    310: "the result of a child that was stopped and resumed",
    1000926: "a stopped child goes on, tools and all, with a message that was to run next",
    1000391: "a stop right behind `/queue resume` misses what was just resumed",
    1002477: "a session's actor dies because two copies of its queue differ",
    72000216: "a child is opened again before its first opening has been answered",
    1377723505: "a child is resumed whose session had ended before a crash that its parent forgot it in",
    1190415042: "a stopped child whose actor fails resumes its own children",
    2051986202: "the only word after a crash is that a side talk's answer is to run",
    653478646: "a side talk begins in a session that is being finalized",
    1048386568: "a child is resumed whose session was about to end before a crash",
    1048384444: "an answer that missed its turn is offered again while the queue is held, and runs",
    1048422191: "a side talk that was asked for before a limit was reached begins after that",
    1002135: "a finalized child is resumed after a crash, and stays owned",
}
CHUNK = 100
FEW = 60


def test_promises_hold_in_some_runs() -> None:
    """No promise is broken in the first runs, uniform and by priorities in turn."""
    for seed in range(FEW):
        Scenario(seed).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_promises_hold_in_many_runs(first: int) -> None:
    """No promise is broken in any of these runs."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        Scenario(seed).run()


BESIDE = {
    25: "a message is posted to a session whose first program died before it had written anything",
}


def test_promises_hold_beside_other_processes() -> None:
    """No promise is broken where others post to the mailbox, the clock leaps, and settings are drawn."""
    for seed in (*BESIDE, *range(FEW)):
        ElsewhereScenario(seed).run()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FEW, 1_000, CHUNK))
def test_promises_hold_in_many_runs_beside_other_processes(first: int) -> None:
    """No promise is broken in any of these runs beside other processes."""
    for seed in range(first, min(first + CHUNK, 1_000)):
        ElsewhereScenario(seed).run()


@pytest.mark.parametrize("seed", FOUND)
def test_promises_hold_in_runs_that_once_broke_them(seed: int) -> None:
    """Each of these runs has found a fault in the product: see what it comes upon."""
    Scenario(seed).run()


def test_a_child_whose_model_gives_no_answer_ends_with_what_waits_in_it() -> None:
    """Nothing is held there: nobody could have it go on, and its parent would wait for ever."""
    ElsewhereScenario(911940241).run()


def test_what_died_of_an_overtaken_stop_is_told() -> None:
    """A planned stop ends a child; a second one, now, tells of what died of both."""
    LoopScenario(1_313_792_054).run()


@pytest.mark.parametrize("seed", [3, 4])
def test_a_seed_is_a_run(seed: int) -> None:
    """The same seed gives the same history, happening by happening."""
    first, second = Scenario(seed).run().chronicle, Scenario(seed).run().chronicle
    assert first.all == second.all


def interrupt_while_steers_enter() -> None:
    """Stop a turn just when a steer has entered at the end of its answer, and nothing was asked yet."""
    plan = SimulationPlan(chances=TALK, haste=0.0, longest_batch=1)
    made = SimulatedProgram(plan, Random(7), by_rank("", "children", "queue", "turn"))
    say(made, "work", client_id="c1")
    run(made, lambda: bool(made.ports.models))
    say(made, "use tabs", Intent.EXPLICIT_STEER, client_id="c2")
    run(made, has(made, e.Steered))
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    say(made, "go on", client_id="c3")
    finish(made)
    assert len(entries(made, e.TurnStarted)) == 2


def test_a_cut_while_steers_enter_is_found() -> None:
    """A turn that is cut off just after a steer entered owes the conversation a last word."""
    interrupt_while_steers_enter()
    with planted_all(*NO_LAST_WORD.plants), pytest.raises(AssertionError, match="in a row"):
        interrupt_while_steers_enter()


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    """Each planted fault is noticed within few runs, by the check of the promise that it breaks."""
    assert any(run_with(FAULTS[name], seed) for seed in range(WITHIN))


def test_every_promise_of_a_history_is_checked() -> None:
    """Each function that checks a history is in the list of those that are run."""
    checks = {
        function
        for _, function in inspect.getmembers(promises, inspect.isfunction)
        if [*inspect.signature(function).parameters] == ["history"]
        and inspect.signature(function).return_annotation is None
    }
    assert checks == set(promises.HISTORY)


def test_what_a_child_killed_for_an_overtaken_stop_is_told() -> None:
    """A child dies of a planned stop after another one took its place: the end of the turn tells it."""
    ElsewhereScenario(768_612_187).run()


@pytest.mark.parametrize("scenario", [Scenario, GoalScenario, ElsewhereScenario])
def test_remembered_answers_of_machines_change_nothing(
    scenario: type[Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is asked anew each time, by `transitions`, answers the same."""
    remembered = [scenario(seed).run().chronicle.all for seed in range(3)]
    monkeypatch.setattr(machine, "_ANSWERS", 0)
    monkeypatch.setattr(machine, "_COMPILED", {})
    assert [scenario(seed).run().chronicle.all for seed in range(3)] == remembered
    assert not any(engine.answers for engine in machine._COMPILED.values())
