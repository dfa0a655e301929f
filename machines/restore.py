"""The machine of a restore record: what is kept so that a session of another agent can be resumed.

Agents call their hooks by different names, and some say that a session ends after every turn. So one
event has two rows: where the agent's definition says that a session's end is a turn boundary, it
moves the record to where the prompt stopped; where not, it tears down, by the same row and the same
effect as a finalize. A dead process alone is no event at all. A session that comes back after its end
begins a new record; the old one is final and stays so.
"""

from .machine import Machine, State, Transition

__all__ = ["RESTORE"]

_KEPT = ("working", "waiting", "stale")
_REPORTED = (
    "prompt_submit",
    "agent_response",
    "notification",
    "session_end",
    "session_finalize",
    "forget",
)

RESTORE = Machine(
    name="restore",
    doc="What is known of a session of an external agent, kept until it is finalized.",
    initial="unknown",
    states=(
        State("unknown", "Nobody has heard of the session: its events change nothing."),
        State("working", "A prompt was submitted and has not been answered."),
        State("waiting", "It waits for a prompt; where the last one stopped is recorded."),
        State("stale", "Nothing was heard of it for `restore.retention_hours`."),
        State("finalizing", "It is over; whoever has to hear of it has not heard yet."),
        State("finalized", "It is over, and everybody has heard.", is_final=True),
        State("continued", "It was resumed and goes on under another id.", is_final=True),
    ),
    transitions=(
        Transition("session_start", ("unknown",), "waiting", effects=("open", "bind")),
        Transition("session_start", _KEPT, "waiting", effects=("bind",)),
        Transition("prompt_submit", _KEPT, "working", effects=("bind",)),
        Transition("agent_response", _KEPT, "waiting", effects=("bind", "note_boundary")),
        Transition("notification", ("working", "waiting"), effects=("bind",)),
        Transition("notification", ("stale",), "waiting", effects=("bind",)),
        Transition(
            "session_end", _KEPT, "waiting", ("is_turn_boundary",), ("bind", "note_boundary")
        ),
        Transition("session_end", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("session_finalize", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("forget", _KEPT, "finalizing", effects=("tear_down",)),
        Transition("outlive", ("working", "waiting"), "stale"),
        Transition("outlive", ("stale",), ignored="stale already"),
        Transition("expire", ("stale",), "finalizing", effects=("tear_down",)),
        Transition("resume", _KEPT, "waiting", effects=("bind",)),
        Transition("continue", _KEPT, "continued"),
        Transition("settle", ("finalizing",), "finalized"),
        Transition(
            "prompt_submit",
            ("unknown",),
            "working",
            ("was_known", "prompt_reopens"),
            ("open", "bind"),
        ),
        *(
            Transition(event, ("unknown",), ignored="nobody knows this session")
            for event in _REPORTED
        ),
        *(Transition(event, ("finalizing",), ignored="it is over already") for event in _REPORTED),
    ),
    control=("session_end", "session_finalize", "forget"),
)
