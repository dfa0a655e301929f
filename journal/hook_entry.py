"""The entry of a hook that was run: for people who ask what became of it; it changes no state."""

from dataclasses import dataclass

from .entry import Entry


@dataclass(frozen=True, slots=True)
class HookRan(Entry):
    """A hook of `event` ended: `status` is exited, timed_out, failed, killed, lost or skipped.

    `command` says which, `output` is the head and tail of what it printed, `seconds` how long it
    took. `about` is the number of the entry that it was told of, `finalize` the id of a session's
    end.
    """

    event: str
    command: str
    status: str
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""
    about: int = 0
    finalize: str = ""
