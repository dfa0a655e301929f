"""The plan: which fault a case has, and at which moment; drawn by a seed, the same for all agents.

The number of a case chooses the kind, in turn, so that as many cases as there are kinds try each once.
The moment is drawn by `random.Random` from seed and number, so one case does not depend on others.
"""

import random
from dataclasses import dataclass

__all__ = ["KINDS", "REVISION", "SIGNALS", "Case", "Kind", "draw"]

REVISION = 1
"""Of plan, model and steps together: results of another one are not counted."""
SIGNALS = {"kill": "SIGKILL", "term": "SIGTERM", "hup": "SIGHUP", "int": "SIGINT"}
"""What ends an agent, and the signal that does."""


@dataclass(frozen=True)
class Kind:
    """A fault. `act` is what happens, `when` what it waits for, `tool` how the step runs that is hit.

    `act`: a key of `SIGNALS`, `pause` (SIGSTOP, later SIGCONT), or what the model server does: `hang`,
    `reset`, `429`, `500`, `garbage`, `half`. `when`: `request` (one has come), `stream` (words of an
    answer were sent), `tool` (a step has begun), `ended` (a step has ended), `queued` (a message into
    the running turn was acknowledged). `group`: the signal is for the process group.
    """

    name: str
    act: str
    when: str
    tool: str = "plain"
    group: bool = False

    @property
    def is_server(self) -> bool:
        """Whether the model server has the fault, and not the agent."""
        return self.act not in SIGNALS and self.act != "pause"

    @property
    def ends(self) -> bool:
        """Whether the agent is to end by it."""
        return self.act in SIGNALS

    @property
    def needs_tool(self) -> bool:
        """Whether only an agent that runs commands can be tried."""
        return self.when in ("tool", "ended", "queued")


KINDS = (
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


@dataclass(frozen=True)
class Case:
    """A fault at a moment: in step `step` of `steps`, both from 1 on.

    A fault that waits for a request or a stream meets the answer which is to call that step, the stream
    after `words` words. `delay` are the seconds between what is waited for and the fault.
    """

    number: int
    seed: int
    kind: Kind
    steps: int
    step: int
    words: int
    delay: float


def draw(seed: int, number: int) -> Case:
    """Draw a case; the same one for the same numbers."""
    dice = random.Random(f"{seed}:{number}")
    kind = KINDS[number % len(KINDS)]
    steps = dice.randint(2, 4)
    step, words = dice.randint(1, steps), dice.randint(1, 200)
    waits = kind.when == "tool" or (kind.ends and kind.when == "request")
    delay = round(dice.uniform(0, 1.0), 3) if waits else 0.0
    return Case(number, seed, kind, steps, step, words, delay)
