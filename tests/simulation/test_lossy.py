"""A store whose answers are lost: every promise holds, and nothing is written twice."""

from random import Random

from simulation.single import finish

from steersman.simulator.choices import chooser_of
from steersman.simulator.person import SimulatedPerson
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulationPlan


def test_lost_answers_break_no_promise() -> None:
    """Answers are lost before, after and during writes, beside crashes and leases that are lost."""
    lost = [run(seed) for seed in range(30)]
    assert all(sum(counts[kind] for counts in lost) > 20 for kind in ("before", "after", "late"))


def run(seed: int) -> dict[str, int]:
    """Play one run to its end, and count the answers that its last incarnation lost."""
    dice = Random(seed)
    plan = SimulationPlan(
        chances=Chances(model_fails=0.1),
        crash_at=dice.choice((None, dice.randrange(3, 60))),
        losses=0.4,
    )
    program = SimulatedProgram(plan, dice, chooser_of(seed, dice))
    SimulatedPerson(program, dice, 10)
    finish(program)
    return program.writer.store.lost
