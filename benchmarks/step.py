"""What a step of a machine costs, beside a dictionary lookup and a plain `transitions` trigger.

Run it as `python benchmarks/step.py`, with the package installed. Times are processor time,
the best of several interleaved rounds; on a busy machine trust the ratios.
"""

import time
from collections.abc import Callable

import transitions

from steersman.machines.lifecycles import TURN
from steersman.machines.machine import compiled, step

ROUNDS = 9
REPEATS = 20_000
FACTS = frozenset({"has_calls"})


class Plain:
    """A model as `transitions` wants it, with its triggers attached."""

    state: str
    trigger: Callable[[str], bool]


def microseconds(run: Callable[[], object]) -> float:
    """Time one call, in microseconds of processor time."""
    begin = time.process_time()
    for _ in range(REPEATS):
        run()
    return (time.process_time() - begin) / REPEATS * 1e6


def subjects() -> dict[str, Callable[[], object]]:
    """Name what is compared; all but the first fire events through `transitions`."""
    table = {("calling", "answer", FACTS): ("acting", ("start_calls",))}
    plain = Plain()
    transitions.Machine(
        model=plain,
        states=["calling", "acting"],
        initial="calling",
        transitions=[{"trigger": "answer", "source": "calling", "dest": "calling"}],
        auto_transitions=False,
    )
    compiled(TURN)
    return {
        "dict lookup": lambda: table["calling", "answer", FACTS],
        "model.trigger": lambda: plain.trigger("answer"),
        "step": lambda: step(TURN, "boundary", "finish"),
        "step, guarded": lambda: step(TURN, "calling", "answer", FACTS),
        "step, refused": lambda: step(TURN, "completed", "answer"),
    }


def main() -> None:
    """Print a table."""
    named = subjects()
    best = dict.fromkeys(named, float("inf"))
    for _ in range(ROUNDS):
        for name, run in named.items():
            best[name] = min(best[name], microseconds(run))
    print(f"{'':<16}{'us':>8}{'x dict':>9}{'x trigger':>11}")
    for name, cost in best.items():
        by_dict, by_trigger = cost / best["dict lookup"], cost / best["model.trigger"]
        print(f"{name:<16}{cost:>8.2f}{by_dict:>9.0f}{by_trigger:>11.2f}")


if __name__ == "__main__":
    main()
