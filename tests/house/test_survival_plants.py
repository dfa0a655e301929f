"""`make bench-survival` finds what is planted in an agent that survives: a fault each."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.survival_agent import PLANTS

from .conftest import Load

pytestmark = pytest.mark.nightly

SCRIPT = Path(__file__).parents[1] / "support" / "survival_agent.py"
HEADER = Path("/usr/include/stdio.h")
MOST = 3
"""Cases of a kind until a fault is to be found."""


@pytest.fixture
def judged(load: Load, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Any]:
    """Return what has an agent with a planted fault try a case, and the verdict."""
    agents, contender = load("agents"), load("contender")
    lines, trial = load("contenders").Lines, load("trial")
    monkeypatch.setattr(trial, "LIMIT", 30.0)

    class Talk(lines):  # type: ignore[misc, valid-type]
        def say(self, text: str) -> None:
            self.send(text=text)
            self.wait(lambda event: "ok" in event)

        def close(self) -> None:
            super().close()
            self.process.stdout.close()

    class Planted(agents.Agent):  # type: ignore[misc, name-defined]
        name = "planted"
        queues = True

        def __init__(self, plant: str) -> None:
            super().__init__()
            self.contender = contender.Contender(
                "planted", lambda place: [sys.executable, str(SCRIPT), plant, place.url]
            )

        def start(self, prompt: str) -> list[str]:
            return [*self.prefix, "start", prompt]

        def resume(self, prompt: str) -> list[str]:
            return [*self.prefix, "resume", prompt]

        def live(self) -> Talk:
            return Talk([*self.prefix, "live"], self.folder, self.environ)

        def queue(self, live: Talk, text: str) -> None:
            live.say(text)

        def sessions(self) -> list[str]:
            return [path.name for path in (self.home / ".agent").glob("*")]

    def judge(plant: str, number: int) -> Any:
        case = load("plan").draw(1, number)
        if case.kind.needs_library and not (shutil.which("cc") and HEADER.exists()):
            pytest.skip("there is no C compiler, with which the faults of disk and clock are made")
        return load("verdict").judge(trial.try_case(Planted(plant), case))

    return judge


FOUND = {
    "forgets": ("kill in a tool", "lost"),
    "loses acknowledged": ("kill when a message is acknowledged", "lost"),
    "doubles": ("SIGTERM in a stream", "doubled"),
    "repeats tools": ("kill when a tool has ended", "twice"),
    "leaves daemon": ("kill while a tool has a daemon", "left"),
    "invents": ("model server answers 500", "files"),
    "ignores SIGTERM": ("SIGTERM in a tool", "went_on"),
    "refuses": ("kill at a request", "unresumable"),
    "reorders": ("kill when a message is acknowledged", "reordered"),
    "gives up well": ("model server sends half an answer", "files"),
    "ignores full disk": ("disk is full in a stream", "twice"),
    "waits for disk": ("disk fails at a request", "went_on"),
    "has no lock": ("second program in a tool", "lost"),
    "sorts by clock": ("clock jumps in a stream", "reordered"),
    "tidies by clock": ("clock jumps in a tool", "lost"),
    "waits for terminal": ("terminal closes in a tool", "went_on"),
}
"""By which kind a planted fault is found, and what is counted then."""


def numbers(load: Load, kind: str) -> list[int]:
    """Return the first cases of a kind."""
    plan = load("plan")
    return [one for one in plan.numbers(MOST) if plan.kind_of(one).name == kind]


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_fault_is_found(
    load: Load, judged: Callable[[str, int], Any], plant: str
) -> None:
    """One of the first cases of its kind counts it."""
    kind, figure = FOUND[plant]
    assert any(getattr(judged(plant, number), figure) for number in numbers(load, kind))


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in FOUND.values()}))
def test_what_survives_is_clean(load: Load, judged: Callable[[str, int], Any], kind: str) -> None:
    """Nothing is counted of the same agent without a fault, in the same kinds."""
    verdict = judged("none", numbers(load, kind)[0])
    assert (verdict.was_tried, verdict.reasons) == (True, [])
