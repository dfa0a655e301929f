"""From folded entries to durable ones: what a pass of the dispatcher decided becomes one commit.

Lives on the dispatcher's thread. The journal's writer thread does the waiting; what it answers comes
back to the session as `Committed`, or as `StoreBroke`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field

from ..journal.queue_record import QueueRecord
from ..journal.record import SessionRecord
from ..journal.recovery import snapshot
from ..journal.revert_record import beside, result_of
from ..journal.store import Commit, Lease, SessionRow, StoredEntry
from ..machines import protocol as m
from ..machines.errors import SteersmanError, StoreError

SNAPSHOT_EVERY = 100
SHARE = 4
"""A snapshot is taken when a quarter as many entries have come as a run has items, or a queue messages.

Of a session with children it is taken when as many entries have come as there are children.
"""


class Owned(Struct, kw_only=True, eq=False):
    """A session that this process owns, and what of it is not with the writer yet.

    `unread` are the messages of its mailbox that are being decided, `consumed` those that have been.
    """

    lease: Lease
    tell: Callable[[Any], None]
    record: SessionRecord | None = None
    entries: list[StoredEntry] = field(default_factory=list[StoredEntry])
    snapshot_seq: int = 0
    unread: set[int] = field(default_factory=set[int])
    consumed: list[int] = field(default_factory=list[int])


Token = tuple[Owned, int]
"""Who has decided a commit, and its newest entry."""


class Submit(Protocol):
    """Hands a commit to the writer thread; never blocks."""

    def __call__(self, commit: Commit, token: Token) -> None:
        """Take it."""
        ...


class Commits:
    """The journal as the session actors see it; `flush` belongs after each pass.

    `claimed` are the leases of sessions that are owned, and not open yet.
    """

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._owned: dict[str, Owned] = {}
        self._dirty: dict[str, Owned] = {}
        self.claimed: dict[str, Lease] = {}
        self._is_fenced = False

    def own(self, lease: Lease, tell: Callable[[Any], None], seq: int) -> None:
        """Begin to journal a session, whose newest entry is `seq`; `tell` reaches its actor."""
        before = self._owned.get(lease.session)
        unread = before.unread if before is not None else set[int]()
        self._owned[lease.session] = Owned(lease=lease, tell=tell, snapshot_seq=seq, unread=unread)

    def disown(self, session: str) -> Lease | None:
        """Stop journalling a session and return its lease."""
        owned = self._owned.pop(session, None)
        return owned.lease if owned else None

    def fence(self, reason: str, hint: str) -> None:
        """Submit nothing more, and send every session the news: another process may own it by now."""
        self._is_fenced = True
        broke = m.StoreBroke(reason=reason, hint=hint, is_lease_lost=True)
        for owned in list(self._owned.values()):
            owned.tell(broke)

    def unfence(self) -> None:
        """Submit again what is decided from now on, in sessions that were claimed again."""
        self._is_fenced = False

    def hand_out(self, session: str, posted: int) -> Lease | None:
        """Note that a message of a session's mailbox is decided from now on, under the lease returned.

        None if the session is not owned.
        """
        owned = self._owned.get(session)
        if owned is None:
            return None
        owned.unread.add(posted)
        return owned.lease

    def take_back(self, session: str, posted: int) -> None:
        """Note that no later decision is about a message of a session's mailbox. Idempotent."""
        if (owned := self._owned.get(session)) is not None:
            owned.unread.discard(posted)

    def append(self, entry: StoredEntry, record: SessionRecord, posted: int = 0) -> None:
        """Take the newest entry of a session; it is submitted at the end of the pass.

        The first one about a message of the mailbox consumes that in the same transaction.
        """
        owned = self._owned[record.id]
        owned.record = record
        owned.entries.append(entry)
        if posted in owned.unread:
            owned.unread.remove(posted)
            owned.consumed.append(posted)
        self._dirty[record.id] = owned

    def flush(self) -> None:
        """Submit what has gathered, one commit a session."""
        dirty, self._dirty = self._dirty, {}
        if self._is_fenced:
            return
        for owned in dirty.values():
            record = owned.record
            assert record is not None
            entries, owned.entries = owned.entries, []
            consumed, owned.consumed = owned.consumed, []
            is_due = record.seq - owned.snapshot_seq >= _span(record)
            if is_due:
                owned.snapshot_seq = record.seq
            commit = Commit(
                lease=owned.lease,
                entries=entries,
                row=row_of(record),
                consumed=consumed,
                snapshot=snapshot(record) if is_due else None,
            )
            self._submit(commit, (owned, record.seq))

    def answered(self, token: Token, result: bool | SteersmanError) -> None:
        """Send the session the outcome of a commit; a session that was recovered since then has its own.

        A store that fails fails for every session: none waits for another that cannot go on.
        """
        owned, seq = token
        if self._owned.get(owned.lease.session) is not owned:
            return
        if result is True:
            owned.tell(m.Committed(seq=seq))
        elif result is False:
            reason = "another process has taken over this session"
            owned.tell(
                m.StoreBroke(
                    reason=reason, hint="`steersman sessions list` shows it", is_lease_lost=True
                )
            )
        else:
            broke = m.StoreBroke(reason=result.message, hint=result.hint)
            is_general = isinstance(result, StoreError)
            for other in list(self._owned.values()) if is_general else [owned]:
                other.tell(broke)


def row_of(record: SessionRecord) -> SessionRow:
    """Return what a list of sessions shows of this one."""
    queue, run = record.queue, record.run
    is_over = record.state == "finalized"  # what waited in it ended with it
    helpers = beside(record.children, record.reverts)
    at_work = sum(child.is_at_work for child in helpers)
    return SessionRow(
        session=record.id,
        folder=record.folder,
        name=record.name,
        title=record.title,
        state=record.state,
        agent=record.agent,
        created=record.created,
        updated=record.updated,
        seq=record.seq,
        waiting=0 if is_over else queue.pending_count,
        interrupted=0 if is_over else _cut_off(queue) + len(helpers) - at_work,
        asking=record.asking,
        offered=0 if is_over else sum(item.state == "offered" for item in queue.special()),
        at_work=0 if is_over else at_work,
        is_held=queue.state == "held",
        parent=record.parent,
        workflow=run.workflow.name if run is not None else "",
        run=result_of(run, record.reverts) if run is not None else "",
    )


def _cut_off(queue: QueueRecord) -> int:
    """Count what was interrupted or replaced, or left by its model without an answer."""
    cut_off = sum(item.state == "interrupted" for item in queue.special())
    return cut_off + sum(not item.for_turn for item in queue.aside())


def _span(record: SessionRecord) -> int:
    """After how many entries a snapshot is taken: seldom where what it holds is long."""
    items = sum(step.total for step in record.run.steps.values()) if record.run is not None else 0
    return max(SNAPSHOT_EVERY, (items + len(record.queue.order)) // SHARE, len(record.children))
