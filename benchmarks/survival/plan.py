"""The plan: which fault a case has, and at which moment; drawn by a seed, the same for all agents.

The number of a case chooses the kind, in turn, so that as many cases as there are kinds try each once.
Kinds that were thought of later have numbers of their own, from `LATER` on, so no case that was tried
becomes another one.
The moment is drawn by `random.Random` from seed and number, so one case does not depend on others.
"""

import random
from dataclasses import dataclass

__all__ = ["KINDS", "LATER", "REVISION", "SIGNALS", "Case", "Kind", "draw", "kind_of", "numbers"]

REVISION = 1
"""Of plan, model and steps together: results of another one are not counted."""
SIGNALS = {"kill": "SIGKILL", "term": "SIGTERM", "hup": "SIGHUP", "int": "SIGINT"}
"""What ends an agent, and the signal that does."""


@dataclass(frozen=True)
class Kind:
    """A fault. `act` is what happens, `when` what it waits for, `tool` how the step runs that is hit.

    `act`: a key of `SIGNALS`, `pause` (SIGSTOP, later SIGCONT), what the model server does (`hang`,
    `reset`, `429`, `500`, `garbage`, `half`), or what happens around the agent: `full` and `failing`
    are its disk, `clock` jumps, a `second` program continues the conversation, its terminal does
    `close`. `when`: `request` (one has come), `stream` (words of an answer were sent), `tool` (a step
    has begun), `ended` (a step has ended), `queued` (a message into the running turn was
    acknowledged). `group`: the signal is for the process group.
    """

    name: str
    act: str
    when: str
    tool: str = "plain"
    group: bool = False

    @property
    def is_server(self) -> bool:
        """Whether the model server has the fault, and not the agent."""
        return self.act in ("hang", "reset", "429", "500", "garbage", "half")

    @property
    def ends(self) -> bool:
        """Whether the agent is to end by it."""
        return self.act in SIGNALS

    @property
    def needs_tool(self) -> bool:
        """Whether only an agent that runs commands can be tried."""
        return self.when in ("tool", "ended", "queued")

    @property
    def needs_library(self) -> bool:
        """Whether it comes by the library of faults.py, which does not reach each program."""
        return self.act in ("full", "failing", "clock")


_FIRST = (
    Kind("kill at a request", "kill", "request"),
    Kind("kill in a stream", "kill", "stream"),
    Kind("kill in a tool", "kill", "tool", "slow"),
    Kind("kill when a tool has ended", "kill", "ended"),
    Kind("kill when a message is acknowledged", "kill", "queued", "slow"),
    Kind("kill the group at a request", "kill", "request", group=True),
    Kind("kill the group in a stream", "kill", "stream", group=True),
    Kind("kill the group in a tool", "kill", "tool", "slow", group=True),
    Kind("SIGTERM in a stream", "term", "stream"),
    Kind("SIGTERM in a tool", "term", "tool", "slow"),
    Kind("SIGHUP in a stream", "hup", "stream"),
    Kind("SIGHUP in a tool", "hup", "tool", "slow"),
    Kind("SIGSTOP and SIGCONT in a stream", "pause", "stream", group=True),
    Kind("SIGSTOP and SIGCONT in a tool", "pause", "tool", "slow", group=True),
    Kind("model server hangs", "hang", "request"),
    Kind("model server resets", "reset", "request"),
    Kind("model server answers 429", "429", "request"),
    Kind("model server answers 500", "500", "request"),
    Kind("model server answers garbage", "garbage", "request"),
    Kind("model server sends half an answer", "half", "stream"),
    Kind("SIGINT while a tool has a daemon", "int", "tool", "daemon", group=True),
    Kind("kill while a tool has a daemon", "kill", "tool", "daemon"),
    Kind("SIGINT while a tool ignores signals", "int", "tool", "stubborn", group=True),
    Kind("kill the group while a tool ignores signals", "kill", "tool", "stubborn", group=True),
    Kind("SIGINT while a tool prints endlessly", "int", "tool", "endless", group=True),
    Kind("kill while a tool prints endlessly", "kill", "tool", "endless"),
)
_LATER = (
    Kind("disk is full at a request", "full", "request"),
    Kind("disk is full in a stream", "full", "stream"),
    Kind("disk is full in a tool", "full", "tool", "slow"),
    Kind("disk fails at a request", "failing", "request"),
    Kind("disk fails in a stream", "failing", "stream"),
    Kind("disk fails in a tool", "failing", "tool", "slow"),
    Kind("clock jumps in a stream", "clock", "stream"),
    Kind("clock jumps in a tool", "clock", "tool", "slow"),
    Kind("second program in a stream", "second", "stream"),
    Kind("second program in a tool", "second", "tool", "slow"),
    Kind("terminal closes in a stream", "close", "stream"),
    Kind("terminal closes in a tool", "close", "tool", "slow"),
)
KINDS = (*_FIRST, *_LATER)
LATER = 1000
"""The first number of the kinds that were thought of later."""
_JUMPS = (-5_184_000, -3600, 3600, 5_184_000)  # an hour, sixty days


def kind_of(number: int) -> Kind:
    """Return the kind of a case."""
    kinds = _FIRST if number < LATER else _LATER
    return kinds[(number if number < LATER else number - LATER) % len(kinds)]


def numbers(rounds: int) -> list[int]:
    """Return the numbers of the cases which try each kind so often."""
    return [*range(rounds * len(_FIRST)), *range(LATER, LATER + rounds * len(_LATER))]


@dataclass(frozen=True)
class Case:
    """A fault at a moment: in step `step` of `steps`, both from 1 on.

    A fault that waits for a request or a stream meets the answer which is to call that step, the stream
    after `words` words. `delay` are the seconds between what is waited for and the fault. `amount` are
    the seconds by which a clock jumps, or for which a disk fails; 0 of a disk: until the agent has ended.
    """

    number: int
    seed: int
    kind: Kind
    steps: int
    step: int
    words: int
    delay: float
    amount: float = 0.0


def draw(seed: int, number: int) -> Case:
    """Draw a case; the same one for the same numbers."""
    dice = random.Random(f"{seed}:{number}")
    kind = kind_of(number)
    steps = dice.randint(2, 4)
    step, words = dice.randint(1, steps), dice.randint(1, 200)
    waits = kind.when == "tool" or (kind.ends and kind.when == "request")
    delay = round(dice.uniform(0, 1.0), 3) if waits else 0.0
    amount = 0.0
    if kind.act == "clock":
        amount = dice.choice(_JUMPS)
    elif kind.needs_library:
        amount = dice.choice((0.0, round(dice.uniform(0.5, 5.0), 3)))
    return Case(number, seed, kind, steps, step, words, delay, amount)
