"""What the command line asked for, beyond the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """The agent and the model by name, empty where nobody said.

    `is_yes`: nothing is asked, everything that no rule forbids is allowed. `can_ask`: somebody is there
    to answer questions.
    """

    agent: str = ""
    model: str = ""
    is_yes: bool = False
    can_ask: bool = False
    is_debug: bool = False
