"""Summing up, under every order of events: interrupts, crashes, steers, late and failing summaries."""

from random import Random

from simulation.single import entries, finish

from steersman.journal.entries import Compacted
from steersman.machines import protocol as m
from steersman.machines.policy import CompactionPolicy
from steersman.simulator.choices import chooser_of
from steersman.simulator.person import SimulatedPerson
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulationPlan


def test_summing_up_keeps_every_promise() -> None:
    """In a window so small that nearly every turn sums up, and with people who ask for it besides."""
    assert {how for seed in range(40) for how in run(seed)} >= {"summary"}


def run(seed: int) -> set[str]:
    """Play one run to its end, and say how it made room."""
    dice = Random(seed)
    crash = dice.choice((None, dice.randrange(3, 60)))
    policy = CompactionPolicy(window=dice.choice((0, 12, 40)), keep=dice.choice((0.0, 0.3)))
    plan = SimulationPlan(chances=Chances(model_fails=0.2), compaction=policy, crash_at=crash)
    program = SimulatedProgram(plan, dice, chooser_of(seed, dice))
    SimulatedPerson(program, dice, 12)
    for _ in range(3):
        program.timeline.after(
            dice.random() * 30, lambda: program.say(m.Compact(wish="all")), "user"
        )
    finish(program)
    return {entry.how for entry in entries(program, Compacted)}
