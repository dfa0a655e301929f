"""One graph under many schedules and crashes: it always comes to the same end."""

import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest
from simulation.goal_faults import RUN_FAULTS
from simulation.planting import planted_all
from simulation.single import poison

from steersman.actors.decisions import run_attempts, run_steps
from steersman.actors.decisions.decision import Decision
from steersman.actors.decisions.run_attempts import RunView
from steersman.actors.decisions.run_work import COMMAND
from steersman.journal import entries as e
from steersman.journal.codec import decode_entry
from steersman.journal.entries import ItemEnded, ItemStarted, StepReopened
from steersman.journal.run_record import StepRecord
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.lifecycles import RUN
from steersman.simulator.ports import Chances, SimulatedPorts
from steersman.simulator.program import ROOT, SimulatedProgram
from steersman.simulator.schedule import PriorityChooser, UniformChooser
from steersman.simulator.session import SimulatedRun, SimulationPlan
from steersman.simulator.workflows import Workflow, WorkflowScenario
from steersman.workflows.flow.reading import load_workflow, parse_workflow
from steersman.workflows.flow.spec import StepSpec
from steersman.workflows.flow.workflow_file import SHIPPED_WORKFLOWS

_LOST, _IS_THROUGH = run_attempts._lost, run_steps._is_through
FEW, SEEDS, CHUNK = 40, 1_000, 120
MOST_STEPS = 60_000
SOURCE = """
[workflow]
name = "graph"
[[step]]
id = "fan"
for_each = ["a", "b", "c", "d", "sk-abcdefghijklmnop1234 \\u001b[31m hunter2hunter2"]
parallel = 3
idempotent = true
run = ["good", "{{ item }}"]
[[step]]
id = "retried"
idempotent = true
retry = { max = 40, backoff = 0.1 }
run = ["flaky"]
[[step]]
id = "late"
idempotent = true
timeout = 5.0
run = ["late"]
[[step]]
id = "agent"
needs = ["fan"]
prompt = "look at it"
[[step]]
id = "no"
needs = ["fan"]
when = "false"
run = ["good"]
[[step]]
id = "care"
needs = ["late", "retried"]
when = "steps.late.status == 'failed'"
idempotent = true
run = ["good"]
[[step]]
id = "bad"
needs = ["agent", "no"]
idempotent = true
continue_on_error = true
run = ["bad"]
[[step]]
id = "after"
needs = ["bad"]
idempotent = true
run = ["good"]
[[step]]
id = "hard"
idempotent = true
for_each = ["x", "y", "z"]
parallel = 2
run = ["rough", "{{ item }}"]
[[step]]
id = "said"
needs = ["hard"]
when = "steps.hard.status == 'failed'"
idempotent = true
run = ["bad"]
[[step]]
id = "behind"
needs = ["hard"]
idempotent = true
run = ["good"]
[[step]]
id = "last"
finally = true
idempotent = true
run = ["good"]
"""
GOAL = """
[workflow]
name = "harmful"
[[step]]
id = "run"
run = ["touch", "run.txt"]
[[step]]
id = "shell"
shell = "touch shell.txt"
[[step]]
id = "call"
call = "harm:touch"
schema = { type = "string" }
[[step]]
id = "agent"
needs = ["run", "shell", "call"]
prompt = "touch agent.txt"
retry = { max = 1 }
goal = { text = "it is there", gates = [["touch", "gate.txt"]] }
[[step]]
id = "ask"
ask = { text = "Really?", options = ["yes", "no"], default = "no", timeout = 20.0 }
[[step]]
id = "last"
finally = true
shell = "touch last.txt"
"""
FOUND = {
    ("fix-tests", 211): "a run is continued that was stopped while a gate of its agent's goal ran",
    (
        "fix-tests",
        1460,
    ): "a fault ends a run before the step ends that looks at the failure of another",
    ("research", 1048377727): "an actor fails while its run is stopped, and the program dies later",
    ("research", 984548814): "the same, with several children at work",
    ("fix-tests", 5): "a person clears the queue of a run that was interrupted",
    ("codemod", 27): "a person takes back the last item of the queue: the run itself",
    (
        "research",
        194,
    ): "words that were interrupted elsewhere come to a run, and are resumed with it",
    ("goal", 287): "the same, at the run of a workflow whose agent has a goal",
    ("research", 0): "an item fails for good while another waits for its next attempt",
    ("goal", 17): "a child whose turn was stopped goes on for its goal, and its queue stays held",
    ("goal", 80): "a child's actor fails before it has set the goal that it was given",
    ("goal", 286): "a crash comes between a child's verdict and its parent's note of it",
    ("goal", 1170): "a steer comes to a child while it has its goal set, and the goal is refused",
    ("goal", 20003): "a steer comes to a child while its goal is resumed: it completes without it",
    (
        "goal",
        3375,
    ): "a supervisor of children fails, and another attempt takes the place of a child",
    ("review", 51): "the session of a step is interrupted, and nobody has stopped the run",
}
LUCK = {"bad": 1.0, "flaky": 0.4, "rough": 0.3}
"""How likely it is that a command fails."""
SPEC = parse_workflow("graph.toml", SOURCE)
END = {
    **dict.fromkeys(("fan", "retried", "agent", "care", "after", "last"), "done"),
    **dict.fromkeys(("hard", "behind"), "done"),
    "late": "failed",
    "bad": "failed",
    "no": "skipped",
    "said": "skipped",
}


class Commands(SimulatedPorts):
    """Ports whose commands end as their name says."""

    def result(self, at: m.RunTool, status: m.ToolStatus) -> m.ToolResult:
        """Return the exit code of the command's fate; what is late takes too long."""
        if at.tool != COMMAND:
            return super().result(at, status)
        word = at.arguments["argv"][0]
        code: int | None = int(self.dice.random() < LUCK.get(word, 0.0))
        if word == "late" and status == "ok":
            status, code = "timed_out", None
        return m.ToolResult(status=status, text="said", exit_code=code)


BEGIN = m.UserMessage(type="normal", said=m.Said(text="run graph"), intent=Intent.EXPLICIT_QUEUE)


def go_on(program: SimulatedProgram) -> None:
    """Take the run up, as `steersman run --resume` does."""
    run = program.root.record.run
    if run is not None and run.state == "failed":
        program.say(m.TryAgain())
    else:
        program.say(m.ResumeQueue() if program.root.record.queue.items else BEGIN)


def done_twice(entries: Iterable[e.Entry]) -> Iterator[tuple[str, int]]:
    """Give the work that began although it was done, and nothing had reset its step."""
    done = set[tuple[str, int]]()
    for entry in entries:
        match entry:
            case ItemEnded(step=step, index=index, status="ok"):
                done.add((step, index))
            case StepReopened(step=step, is_anew=True):
                done -= {row for row in done if row[0] == step}
            case ItemStarted(step=step, index=index) if (step, index) in done:
                yield step, index
            case _:
                pass


def played(seed: int) -> tuple[SimulatedProgram, int]:
    """Run the graph with this seed's order, stops and crashes; say how often it failed in between."""
    dice = random.Random(seed)
    chooser = UniformChooser(dice) if seed % 2 else PriorityChooser(dice)
    plan = SimulationPlan(
        chances=Chances(calls=0.0, model_fails=0.0),
        crash_at=dice.randrange(4, 80),
        ports_type=Commands,
        run=SimulatedRun(spec=SPEC),
    )
    program = SimulatedProgram(plan, dice, chooser)
    stop_at, failures = dice.randrange(0, 4_000), 0
    program.say(BEGIN)
    for number in range(MOST_STEPS):
        if not program.is_running:
            program.restart()
            program.store.crash_at = program.store.writes + dice.randrange(3, 80)
            if dice.random() < 0.5:
                program.store.crash_at = None
            go_on(program)
        if number == stop_at:
            program.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        if not program.step():
            run = program.record.run
            assert run is not None
            if run.state in RUN.final:
                break
            failures += run.state == "failed"
            go_on(program)
    return program, failures


def play(seed: int) -> tuple[tuple[str, dict[str, str], list[tuple[str, int]], list[str]], int]:
    """Return how a run ended, what was done twice, what still waits; and how often it failed before."""
    program, failures = played(seed)
    run = program.record.run
    assert run is not None
    twice = list(done_twice(decode_entry(entry.data) for entry in program.store.entries(ROOT)))
    states = {name: one.state for name, one in run.steps.items()}
    waiting = [item.text for item in program.record.queue.live()]
    program.close()
    return (run.state, states, twice, waiting), failures


def check(seeds: Iterable[int]) -> None:
    """Play each; nothing done is done again, nothing is left over, and some have failed in between."""
    failed = 0
    for seed in seeds:
        end, failures = play(seed)
        assert end == ("succeeded", END, [], []), seed
        failed += failures > 0
    assert failed


def test_a_graph_comes_to_one_end_in_some_schedules() -> None:
    """The first seeds; the rest are slow."""
    check(range(FEW))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_a_graph_comes_to_one_end_in_many_schedules(first: int) -> None:
    """Fan-out, condition, retry, timeout, a last step; stops, crashes, failures and another try."""
    check(range(first, min(first + CHUNK, SEEDS)))


REMOTE = """
[workflow]
name = "remote"
[[step]]
id = "many"
for_each = ["a", "b", "c", "d"]
parallel = 2
run = ["work", "{{ item }}"]
remote = { outputs = ["{{ item }}"] }
[[step]]
id = "safe"
needs = ["many"]
for_each = ["a", "b", "c"]
parallel = 3
idempotent = true
retry = { max = 1, backoff = 1.0 }
shell = "work"
remote = { cpus = 2 }
[[step]]
id = "tolerant"
continue_on_error = true
for_each = ["a", "b"]
run = ["work"]
timeout = 3.0
remote = {}
[[step]]
id = "last"
finally = true
call = "work:done"
remote = { inputs = ["work.py"] }
"""


@cache
def played_here(name: str) -> Workflow:
    """Return a workflow of the library, or one above: with a goal, or with remote steps."""
    if name == "remote":
        return Workflow(parse_workflow("remote.toml", REMOTE))
    if name == "goal":
        return Workflow(parse_workflow("goal.toml", GOAL))
    return Workflow(load_workflow(SHIPPED_WORKFLOWS / f"{name}.toml"))


def of_a_run(seed: Any) -> WorkflowScenario:
    """Return a run of the workflow whose agent has a goal."""
    return WorkflowScenario(seed, played_here("goal"))


@pytest.mark.parametrize("name", ["codemod", "fix-tests", "research", "review", "remote"])
def test_the_shipped_workflows_keep_every_promise(name: str) -> None:
    """Whatever their commands and agents do, and whoever stops them, they end as they should."""
    for seed in range(FEW):
        WorkflowScenario(seed, played_here(name)).run()


@pytest.mark.parametrize(("name", "seed"), [("goal", 645)])
def test_a_child_whose_step_goes_on_without_it_is_ended(name: str, seed: int) -> None:
    """It is cancelled; a program that forgets it is noticed, as the child stays interrupted."""
    WorkflowScenario(seed, played_here(name)).run()
    with (
        planted_all(*RUN_FAULTS["leaves a child whose step goes on without it"].plants),
        pytest.raises(AssertionError, match="no step waits for it"),
    ):
        WorkflowScenario(seed, played_here(name)).run()


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_promises_hold_in_runs_that_once_broke_them(name: str, seed: int) -> None:
    """Each of these runs has found a fault in the product: see what it comes upon."""
    WorkflowScenario(seed, played_here(name)).run()


def test_a_run_whose_actor_fails_while_it_stops_goes_on_where_it_was() -> None:
    """It is interrupted, not failed: one message stays one queue item, and nothing done is repeated."""
    plan = SimulationPlan(
        chances=Chances(calls=0.0, model_fails=0.0),
        haste=0.0,
        longest_batch=1,
        ports_type=Commands,
        run=SimulatedRun(spec=SPEC),
    )
    program = SimulatedProgram(plan, random.Random(7), lambda names: 0)

    def until(state: str) -> None:
        while (program.record.run is None or program.record.run.state != state) and program.step():
            pass
        assert program.record.run is not None
        assert program.record.run.state == state

    program.say(BEGIN)
    until("running")
    while not program.ports.tools and program.step():
        pass
    program.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    until("interrupting")
    poison(program, "turn")
    until("interrupted")
    while program.step():
        pass
    items = list(program.record.queue.items)
    program.say(m.ResumeQueue())
    until("running")
    assert list(program.record.queue.items) == items
    assert not list(done_twice(decode_entry(entry.data) for entry in program.store.entries(ROOT)))
    program.close()


def _lose_and_repeat(view: RunView, step: StepSpec, index: int, ended: m.ToolResult) -> Decision:
    lost = _LOST(view, step, index, ended)
    is_repeated = len(lost.entries) > 1
    again = Decision(entries=(e.ItemReopened(step=step.id, index=index),))
    return lost if is_repeated else lost + again


def _through_without(view: RunView, step: StepSpec, record: StepRecord) -> bool:
    is_lost = record.first("waiting", "running", "interrupted", "resting") is None
    return is_lost or _IS_THROUGH(view, step, record)


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        ((run_attempts, "_lost", _lose_and_repeat), "of unknown outcome unasked"),
        ((run_steps, "_is_through", _through_without), "which was lost"),
        ((run_steps, "_is_stuck", lambda _: False), "never|still|is busy|runs"),
    ],
    ids=["repeats lost work", "takes lost work for done", "waits for lost work"],
)
def test_a_fault_about_lost_work_is_found(plant: tuple[object, str, object], found: str) -> None:
    """The rules about workers that die are proved without one: breaking each is noticed."""

    def play() -> None:
        for seed in range(FEW):
            WorkflowScenario(seed, played_here("remote")).run()

    with planted_all(plant), pytest.raises(AssertionError, match=found):
        play()
