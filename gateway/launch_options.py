"""The options of a launch that the command line sets, beyond the configuration."""

from ..machines.value import Value


class LaunchOptions(Value):
    """The agent and the model by name, empty if the command line names none.

    `is_yes`: calls that would be asked about are allowed. `can_ask`: a person can answer questions.
    `is_one_shot`: the program ends after one message. `mode` is the permission mode that sessions get
    when they are opened; empty for none. `cluster` is where remote steps of a workflow run, as
    `ray://HOST:PORT`; empty: here.
    """

    agent: str = ""
    model: str = ""
    is_yes: bool = False
    can_ask: bool = False
    is_debug: bool = False
    is_one_shot: bool = False
    mode: str = ""
    cluster: str = ""
