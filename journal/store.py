"""The durable store, as a protocol: one interface for one machine and for many.

A session's journal is a dense sequence of entries (JSON objects), seq from 1. One process owns a
session at a time, through a lease whose epoch rises with each claim; a commit under an old epoch is
refused whole. Messages from other processes are posted to the session's inbox and consumed by the
owner in the same transaction that journals their disposition. All methods block; they are called
from the writer thread (`commit`) or from a command that has nothing else to do.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import field

from ..machines.errors import LeaseLost, MachineError, StoreError, UnknownSession, UsageError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .chain import Linked
from .lock import Owner

_ID = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,63}")
_CLIENT_ID_BYTES = 256
_FIRST_PAUSE, _LAST_PAUSE = 0.005, 0.1  # seconds between two looks for a reply


class StoredEntry(Value):
    """One journal entry: `seq` dense from 1 in its session, `time` in seconds since 1970, UTC."""

    seq: int
    time: float
    data: dict[str, Any]


class Snapshot(Value):
    """The state of a session after entry `seq`, as JSON data: a fold of the journal."""

    seq: int
    state: dict[str, Any]


class Posted(Value):
    """A message in a session's inbox; `id` rises within the whole store."""

    id: int
    session: str
    lane: int
    message: dict[str, Any]
    client_id: str
    time: float


class Lease(Value):
    """The right to write one session's journal."""

    session: str
    node: str
    epoch: int


class Position(Value):
    """Where a session's journal stands: the newest lease, number and hash of the last entry."""

    epoch: int
    node: str
    seq: int
    head: bytes = b""


DAMAGED = "damaged"
"""The state in the place of that of a session whose row cannot be read; its journal may be whole."""


OPENED = 8
"""Entries that a session may have in which nobody said anything: it was opened, set up and left."""


class SessionRow(Value):
    """A session in a list of sessions, kept beside the journal so that listing folds nothing.

    `title` is the first words of its first message. `workflow` is the name of what the session runs, if
    it is a run, and `run` how that is. `root` is the session at the top of its family, and `place` where
    its files are (empty: where the home is). Both are set when the session is created, and no commit
    changes them. `asking` counts the questions that wait for a person, `offered` answers that a person
    decides about, `at_work` what works beside its turns. `is_held`: what waits is resumed by a person.
    """

    session: str
    folder: str
    name: str = ""
    title: str = ""
    state: str = "idle"
    agent: str = ""
    created: float = 0.0
    updated: float = 0.0
    seq: int = 0
    waiting: int = 0
    interrupted: int = 0
    asking: int = 0
    offered: int = 0
    at_work: int = 0
    is_held: bool = False
    parent: str = ""
    workflow: str = ""
    run: str = ""
    root: str = ""
    place: str = ""

    @property
    def has_begun(self) -> bool:
        """Whether anything was said in it: what was only opened and left is in no list."""
        named = self.title or self.name or self.workflow or self.parent
        is_used = bool(named or self.waiting or self.interrupted or self.is_damaged)
        return self.seq > (0 if is_used else OPENED)

    def count_interrupted(self, *, is_owned: bool) -> int:
        """Count what was interrupted: where no program has it open, all that was at work, too."""
        return self.interrupted + (0 if is_owned else (self.state == "busy") + self.at_work)

    @property
    def is_damaged(self) -> bool:
        """Whether the row cannot be read: it has only what the store knows of it by itself."""
        return self.state == DAMAGED

    @property
    def may_have_work(self) -> bool:
        """Whether its queue may have something: that is counted when it is left, and not before."""
        return self._count > 0 or self.state not in _AT_REST

    @property
    def has_work(self) -> bool:
        """Whether anything waits or was interrupted in it, as far as the row tells; not of a subagent."""
        if self.seq == 0 or self.parent or self.state in ("finalizing", "finalized"):
            return False
        return self._count > 0 or self.state in ("busy", "leaving")

    @property
    def _count(self) -> int:
        return self.waiting + self.interrupted + self.offered + self.at_work


_AT_REST = ("suspended", "finalized")


class RowFilter(Value):
    """Which sessions a list has: all that fit, or the newest, at `most` so many.

    `folder` is that of the session, `begins` the beginning of its id, `name` what a person called it.
    `is_named`: it has a name. `has_work`: something waits in its queue. `is_top`: it is nobody's
    subagent.
    """

    folder: str = ""
    begins: str = ""
    name: str = ""
    is_named: bool = False
    has_work: bool = False
    is_top: bool = False
    most: int = 0

    def fits(self, row: SessionRow) -> bool:
        """Whether a session is in the list, unless it has too many."""
        return (
            self.folder in ("", row.folder)
            and row.session.startswith(self.begins)
            and self.name in ("", row.name)
            and not (self.is_named and not row.name)
            and (row.has_work or not self.has_work)
            and not (self.is_top and row.parent)
        )


EVERY = RowFilter()
"""All sessions."""


class Commit(Value):
    """A session's request for durability: entries in order, consumed inbox ids, the row to show.

    `row` replaces the session's row; `snapshot`, when given, is kept beside the journal. `answers` maps
    the ids of further messages, which are consumed too, to the replies that their senders get.
    """

    lease: Lease
    entries: Sequence[StoredEntry]
    row: SessionRow
    consumed: Sequence[int] = ()
    snapshot: Snapshot | None = None
    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict[int, Mapping[str, Any]])


class Loaded(Value):
    """The input of recovery: the newest snapshot, the entries after it, the unread inbox."""

    row: SessionRow
    snapshot: Snapshot | None
    tail: tuple[StoredEntry, ...]
    unconsumed: tuple[Posted, ...] = ()


NodeState = Literal["active", "draining"]
"""Whether a node takes more sessions, or gives back those that it has."""


class NodeRow(Value):
    """A process that takes sessions of the home, as others see it; times are seconds since 1970.

    `capacity` is how many families it takes, `sessions` how many sessions it owns, and `incarnation`
    names the run of the store's server in which it joined, if there is a server.
    """

    node: str
    place: str
    host: str
    pid: int
    capacity: int
    state: NodeState = "active"
    since: float = 0.0
    beat: float = 0.0
    incarnation: str = ""
    is_alive: bool = True
    sessions: int = 0


class Watch(Value):
    """How far a schedule was looked at; times are seconds since 1970.

    What was planned up to `upto` is decided. Of what was planned up to `floor` nothing is remembered
    any more, so that nothing of it may begin. `timing` is what the schedule said then.
    """

    schedule: str
    timing: str
    upto: float
    floor: float = 0.0


class Occurrence(Value):
    """One planned time of a schedule, and what became of it; a schedule has each only once.

    `due`: it is to be carried out, in `session`; `begun`: its session has it, and knows the rest;
    `failed`: it could not begin, for a `reason`; `missed`: it was passed over, as the newest of `count`.
    """

    schedule: str
    planned: float
    state: Literal["due", "begun", "failed", "missed"]
    session: str = ""
    noted: float = 0.0
    reason: str = ""
    count: int = 1


REMEMBERED = 7 * 86_400.0
"""Seconds for which occurrences are kept, so that a clock set back repeats none; the newest always is."""


ANSWERS_KEPT = 86_400.0
"""Seconds for which the reply to a message is kept."""


class Nodes(Protocol):
    """The processes that take sessions of a home, as many as they can. Raises `StoreError` and its kin.

    A process that has one session open, such as a chat, need not join. Sessions move as whole families:
    a session with all its descendants.
    """

    def join(self, node: str, place: str, capacity: int) -> None:
        """Enter this process as an active node. Raises `StoreBusy` if a live one has the id."""
        ...

    def beat(self, node: str) -> bool:
        """Prove that the node lives; False if others may have taken over what it owned."""
        ...

    def direct(self, node: str, state: NodeState) -> bool:
        """Set a node's state, which it sees in `rows`, and ring it; False if there is no such node."""
        ...

    def leave(self, node: str) -> None:
        """Remove the node's row. Its leases stay as they are. Idempotent."""
        ...

    def rows(self) -> list[NodeRow]:
        """List the nodes, the longest there first, dead ones too until they own nothing."""
        ...

    def claim_many(self, node: str, place: str, limit: int) -> list[Lease]:
        """Claim up to `limit` families of a place that need an owner, in one transaction.

        A family needs one if no live process owns any of it, and it has mail or its owner died. Of a
        family, all sessions are claimed but those that are finalized and have no mail. Families with mail
        come first; those that others claim at this moment are left out.
        """
        ...

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Give sessions back, all in one transaction. Idempotent."""
        ...


class Store(Protocol):
    """One home's sessions, durable. Raises `StoreError` and its kin."""

    @property
    def nodes(self) -> Nodes:
        """The nodes of the home."""
        ...

    def create(self, row: SessionRow) -> None:
        """Make a session known; its journal is empty."""
        ...

    def claim(self, session: str, node: str) -> Lease | None:
        """Take the session, or none if a live process owns it. Raises `UnknownSession`."""
        ...

    def release(self, lease: Lease) -> None:
        """Give the session back; its journal stays. Idempotent."""
        ...

    def is_owned(self, session: str) -> bool:
        """Whether a live process owns the session. Changes nothing."""
        ...

    def owner(self, session: str) -> Owner | None:
        """Return the session's owner, for display; none if no live one is known."""
        ...

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Make all of them durable in one transaction; False for each whose lease is lost.

        Raises `ConnectionLost` where it is not known whether it happened: `position` tells.
        """
        ...

    def load(self, session: str) -> Loaded:
        """Read the newest state of a session. Changes nothing."""
        ...

    def entries(
        self, session: str, after: int = 0, upto: int | None = None
    ) -> Iterable[StoredEntry]:
        """Read the journal in order, `after` < seq <= `upto`."""
        ...

    def row(self, session: str) -> SessionRow:
        """Read what a list shows of one session."""
        ...

    def snapshot(self, session: str, upto: int) -> Snapshot | None:
        """Read the newest snapshot at or before entry `upto`, if one is kept."""
        ...

    def epoch(self, session: str) -> int:
        """Count the claims of a session: the epoch of its newest lease."""
        ...

    def position(self, session: str) -> Position:
        """Read what the next commit is compared with; `node` is empty if the session was released."""
        ...

    def links(self, session: str) -> Iterator[Linked]:
        """Read all entries as they are stored, whatever they say, with their hashes (`chain.py`)."""
        ...

    def sessions(self, wanted: RowFilter = EVERY) -> list[SessionRow]:
        """List the sessions that are wanted, newest activity first."""
        ...

    def moments(self) -> list[float]:
        """List the hours in which sessions were last active, in seconds since 1970, the oldest first."""
        ...

    def family(self, root: str) -> list[SessionRow]:
        """List a session that is nobody's subagent, and its subagents with theirs."""
        ...

    def owners(self) -> dict[str, Owner]:
        """Map the sessions that live processes own to these, for display."""
        ...

    def search(self, text: str) -> Iterable[tuple[str, StoredEntry]]:
        """Yield the entries that may hold a text, with their sessions; ASCII letters in any case."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return how many bytes the journal of each session takes."""
        ...

    def delete(self, lease: Lease) -> None:
        """Delete a session: its journal, its snapshots, its inbox; its lease ends. Raises `LeaseLost`."""
        ...

    def thin(self, sessions: Sequence[str]) -> None:
        """Drop all but the newest snapshot of these sessions."""
        ...

    def compact(self) -> int:
        """Give unused space back, if it is worth it; returns bytes."""
        ...

    def post(self, session: str, lane: int, message: dict[str, Any], client_id: str = "") -> int:
        """Put a message into a session's inbox, durably, and ring its owner, or nodes of its place.

        The same `client_id` for the same session gives the same id and one message.
        """
        ...

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox, by lane and then by id."""
        ...

    def wait(self, node: str, timeout: float) -> list[str]:
        """Block until a message is posted to a session that `node` owns; `timeout` in seconds.

        Returns the sessions that have unread messages, which may be none: a node also wakes where a
        session of its place has mail and no owner.
        """
        ...

    def answer(self, lease: Lease, message: int, reply: Mapping[str, Any]) -> bool:
        """Give a message its reply, and consume it if it is unread; False if the lease is lost.

        The first reply to a message stays. Raises `MachineError` if the session never had the message.
        """
        ...

    def reply(self, message: int, timeout: float) -> dict[str, Any] | None:
        """Block until a message is answered, and return the reply; none after `timeout` seconds."""
        ...

    def note(self, watch: Watch, occurrences: Sequence[Occurrence] = ()) -> list[bool]:
        """Keep how far a schedule was looked at, and what was found, in one transaction.

        False for each occurrence that is known: it may have begun. One that was `missed` may still
        become another. Those from long before `watch.upto` are forgotten, and `floor` rises to them.
        """
        ...

    def conclude(self, occurrence: Occurrence) -> None:
        """Change what became of a noted occurrence, durably."""
        ...

    def watches(self) -> list[Watch]:
        """List the schedules that were looked at, by name."""
        ...

    def occurrences(self) -> list[Occurrence]:
        """List the occurrences that are remembered, the newest first."""
        ...

    def reopen(self) -> None:
        """Open again after a failure; leases stay. Raises `StoreError` while it cannot be used."""
        ...

    def settle(self) -> None:
        """Do the housekeeping that can wait for an idle moment."""
        ...

    def close(self) -> None:
        """Release all leases, checkpoint, close. Idempotent."""
        ...


def check_identifier(kind: str, text: str) -> str:
    """Return the id of a session or node unchanged, or raise `UsageError`.

    Files and sockets are named after ids.
    """
    if not _ID.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} is not a {kind} id",
            "An id has 1 to 64 characters of a-z, 0-9 and `-`, and does not begin with `-`.",
        )
    return text


def check_client_id(text: str) -> str:
    """Return a client's own message id unchanged, or raise `UsageError`; empty means none."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = _CLIENT_ID_BYTES + 1
    if size > _CLIENT_ID_BYTES:
        raise UsageError(
            f"{text[:80]!r} is not a client id",
            f"A client id is text of at most {_CLIENT_ID_BYTES} bytes of UTF-8.",
        )
    return text


def looked_for(
    look: Callable[[], dict[str, Any] | None], timeout: float, is_over: Callable[[], bool]
) -> dict[str, Any] | None:
    """Look until something is found, `timeout` seconds have passed or it `is_over`; at first often."""
    until, pause = time.monotonic() + timeout, _FIRST_PAUSE
    while (found := look()) is None and not is_over():
        left = until - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(pause, left))
        pause = min(1.5 * pause, _LAST_PAUSE)
    return found


def unknown_session(session: str) -> UnknownSession:
    """Make the error for an id that no session has."""
    return UnknownSession(
        f"there is no session `{session}`", "`steersman sessions list` shows all."
    )


def session_exists(session: str) -> StoreError:
    """Make the error for an id that is taken."""
    return StoreError(f"session `{session}` exists already", "Choose another id.")


def lease_lost(session: str) -> LeaseLost:
    """Make the error for what only the owner may do."""
    return LeaseLost(f"another program has taken over session `{session}`")


def missing_message(session: str, message: int) -> MachineError:
    """Make the error for a commit that consumes a message which is not there (any more)."""
    return MachineError(f"session `{session}`: message {message} is not in its inbox")
