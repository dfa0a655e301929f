"""One graph under many schedules and crashes: it always comes to the same end."""

import logging
import random
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from steersman.actors.mailbox import reply
from steersman.actors.run_session import RunSession
from steersman.actors.simulated_ports import Chances, SimulatedPorts, ToolCall
from steersman.actors.simulated_program import ROOT, SimulatedProgram
from steersman.actors.simulated_session import FOLDER, Plan, SimulatedSession, World
from steersman.actors.simulation import (
    PriorityChooser,
    SimulatedDispatcher,
    UniformChooser,
)
from steersman.actors.system import ActorSystem
from steersman.journal import entries as e
from steersman.journal.run_entries import ItemStarted, WorkflowCopy
from steersman.machines.disposition import Intent
from steersman.machines.messages import Interrupt, ResumeQueue, UserMessage
from steersman.machines.results import ToolFinished
from steersman.machines.run import RUN
from steersman.workflows.flow.reading import parse_workflow

FEW, SEEDS, CHUNK = 40, 1_000, 120
MOST_STEPS = 60_000
SOURCE = """
[workflow]
name = "graph"
[[step]]
id = "fan"
for_each = ["a", "b", "c", "d", "e"]
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
id = "last"
finally = true
idempotent = true
run = ["good"]
"""
SPEC = parse_workflow("graph.toml", SOURCE)
END = {
    **dict.fromkeys(("fan", "retried", "agent", "care", "after", "last"), "done"),
    "late": "failed",
    "bad": "failed",
    "no": "skipped",
}


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """A crash ends actors loudly; here that is no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Commands(SimulatedPorts):
    """Ports whose commands end as their name says."""

    def _end(self, call: ToolCall, status: str) -> None:
        at = call.effect
        if self.tools.pop(at.call, None) is None:
            return
        word = at.arguments["argv"][0]
        code: int | None = (
            1 if word == "bad" or (word == "flaky" and self._dice.random() < 0.4) else 0
        )
        if word == "late" and status == "ok":
            status, code = "timed_out", None
        ended = ToolFinished(at.turn, at.epoch, at.call, status, "said", code)
        reply(call.reply_to, ended)


class RootSession(SimulatedSession):
    """The run's own session; those of its agents are like any other."""

    def __init__(self, world: World) -> None:
        super().__init__(world, ROOT)
        plan = world.plan
        self.ports = Commands(
            world.timeline, world.dice, plan.chances, self._performed, self, world.has_room
        )
        self.environment.perform = self.ports
        self.environment.workflow = SPEC

    def start(self) -> Any:
        """Start the run's actor."""
        if self.ref is not None:
            self.reload()
        self.ref = RunSession.start(self._world.system, self.record, self.environment)
        return self.ref


class RunProgram(SimulatedProgram):
    """A program whose first session is a run."""

    def _start(self) -> None:
        self.dispatcher = SimulatedDispatcher()
        self.system = ActorSystem(self.dispatcher, self.timeline.read)
        self.world = World(
            self.plan, self.store, self.timeline, self.system, self._dice, self.chronicle
        )
        self.root = RootSession(self.world)
        ref = self.root.start()
        if not self.root.record.seq:
            copy = WorkflowCopy(SPEC.name, SPEC.file, SPEC.folder, SPEC.source)
            ref.tell(e.SessionOpened(ROOT, FOLDER, "workflow", "", "", workflow=copy))


def play(seed: int) -> tuple[str, dict[str, str], Counter[tuple[str, int]]]:
    """Run the graph with this seed's order, stops and crashes; return how it ended."""
    dice = random.Random(seed)
    chooser = UniformChooser(dice) if seed % 2 else PriorityChooser(dice)
    plan = Plan(chances=Chances(calls=0.0, model_fails=0.0), crash_at=dice.randrange(4, 80))
    program = RunProgram(plan, dice, chooser)
    stop_at = dice.randrange(0, 4_000)
    program.say(UserMessage("normal", "run graph", Intent.EXPLICIT_QUEUE))
    for number in range(MOST_STEPS):
        if not program.is_running:
            program.restart()
            program.store.crash_at = program.store.writes + dice.randrange(3, 80)
            if dice.random() < 0.5:
                program.store.crash_at = None
            begun = bool(program.root.record.queue.items)
            program.say(
                ResumeQueue()
                if begun
                else UserMessage("normal", "run graph", Intent.EXPLICIT_QUEUE)
            )
        if number == stop_at:
            program.say(Interrupt("stop"))
        if not program.step():
            run = program.record.run
            assert run is not None
            if run.state in RUN.final:
                break
            program.say(ResumeQueue())
    run = program.record.run
    assert run is not None
    starts = Counter(
        (entry.step, entry.index)
        for entry in (one.entry for one in program.history if hasattr(one, "entry"))
        if isinstance(entry, ItemStarted)
    )
    states = {name: one.state for name, one in run.steps.items()}
    program.close()
    return run.state, states, starts


def test_a_graph_comes_to_one_end_in_some_schedules() -> None:
    """The first seeds; the rest are slow."""
    for seed in range(FEW):
        state, steps, _ = play(seed)
        assert (state, steps) == ("succeeded", END), seed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, SEEDS, CHUNK))
def test_a_graph_comes_to_one_end_in_many_schedules(first: int) -> None:
    """Fan-out, condition, retry, timeout, failure and a last step, with stops and crashes."""
    for seed in range(first, min(first + CHUNK, SEEDS)):
        state, steps, _ = play(seed)
        assert (state, steps) == ("succeeded", END), seed
