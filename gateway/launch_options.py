"""What the command line asked for, beyond the configuration."""

from ..machines.value import Value


class LaunchOptions(Value):
    """The agent and the model by name, empty where the command line names none.

    `is_yes`: nothing is asked, everything that no rule forbids is allowed. `can_ask`: a person can
    answer questions.
    """

    agent: str = ""
    model: str = ""
    is_yes: bool = False
    can_ask: bool = False
    is_debug: bool = False
