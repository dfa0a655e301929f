"""The three-tree rule: which paths go back, which stay, and why. Pure.

For each path three things are known: what it held before the agent changed it, what the agent left,
and what it holds now. It goes back only if it still holds what the agent left. Where a person or another
program wrote between two changes of the agent, it goes back to that version, not to the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..machines.value import Value
from .scan import UNREADABLE, PathState

CHANGED_SINCE = "it was changed since"
NO_COPY = {
    "large": "no copy of it was kept: it was too large",
    "unread": "no copy of it was kept: it was not readable",
    "odd": "no copy of it was kept: it was no file, or changed all the time",
}
"""Why a path cannot go back, by the kind of what it was."""
HIDDEN = "its folder may not be entered"
UNSURE = "it changed around the time of a crash and cannot be attributed"
FORCIBLE = frozenset((CHANGED_SINCE, UNSURE))
"""The reasons that `--force` overrules."""


class PathChange(Value):
    """One change of a path by a call.

    `is_shared`: a command ran meanwhile, so that it may have been another program's. `is_unsure`: the
    program died before it could look. `window` numbers the time in which calls overlapped, or one ran.
    """

    turn: str
    call: str
    tool: str
    path: str
    before: PathState | None
    after: PathState | None
    is_shared: bool = False
    is_unsure: bool = False
    window: int = 0


class PathWrite(Value):
    """Give `path` its `target`, if it still is what it is `now`."""

    path: str
    now: PathState | None
    target: PathState | None

    @property
    def is_folder(self) -> bool:
        """Whether this is about a folder alone, which counts as no file."""
        return {state.kind for state in (self.now, self.target) if state is not None} == {"folder"}


class KeptFile(Value):
    """A path that stays as it is, and why."""

    path: str
    why: str


class RestorePlan(Value):
    """The plan. `shared` changed while a command ran; `yours` goes back to a person's version."""

    puts: tuple[PathWrite, ...] = ()
    kept: tuple[KeptFile, ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The paths that go back, without bare folders."""
        return tuple(put.path for put in self.puts if not put.is_folder)


class _Chain(Struct, kw_only=True):
    """The last unbroken chain of an agent's changes of one path."""

    first: PathState | None
    base: PathState | None
    left: PathState | None
    is_shared: bool = False
    is_unsure: bool = False
    is_broken: bool = False
    window: int = 0

    def add(self, touch: PathChange) -> None:
        """Join the next change of the path; after a change by others the chain starts over.

        So it does after a crash, once it changes again: what was there then may be a person's, too.
        """
        if self.is_unsure and not touch.is_unsure:
            self.base, self.is_broken = touch.before, True
            self.is_shared = self.is_unsure = False
        elif touch.before != self.left:
            if 0 < touch.window == self.window:  # calls overlapped: a look among them can meet
                self.is_shared = True  # a file half written
            else:
                self.base, self.is_broken = touch.before, True
                self.is_shared = self.is_unsure = False
        self.left, self.window = touch.after, touch.window
        self.is_shared |= touch.is_shared
        self.is_unsure |= touch.is_unsure


def chains(touches: Iterable[PathChange]) -> dict[str, _Chain]:
    """Join the changes of each path, oldest first, as far as no others came in between."""
    found: dict[str, _Chain] = {}
    for touch in touches:
        chain = found.get(touch.path)
        if chain is None:
            chain = found[touch.path] = _Chain(
                first=touch.before, base=touch.before, left=touch.before
            )
        chain.add(touch)
    return found


def is_bare_folder(chain: _Chain) -> bool:
    """Whether a chain is about a folder alone, which counts as no file."""
    return {state.kind for state in (chain.base, chain.left) if state is not None} == {"folder"}


def make_plan(
    touches: Iterable[PathChange], now: Mapping[str, PathState | None], *, force: bool = False
) -> RestorePlan:
    """Plan how the paths of these touches go back; `now` has what each of them holds."""
    puts: list[PathWrite] = []
    kept: list[KeptFile] = []
    shared: list[str] = []
    yours: list[str] = []
    for path, chain in chains(touches).items():
        current = now[path]
        base = chain.first if force else chain.base
        why = _obstacle(chain, base, current, force=force)
        if why:
            kept.append(KeptFile(path=path, why=why))
        elif current != base:
            put = PathWrite(path=path, now=current, target=base)
            puts.append(put)
            if chain.is_shared and not (chain.is_broken or put.is_folder):
                shared.append(path)
            if chain.is_broken and not force:
                yours.append(path)
    return RestorePlan(puts=tuple(puts), kept=tuple(kept), shared=tuple(shared), yours=tuple(yours))


def _obstacle(
    chain: _Chain, base: PathState | None, current: PathState | None, *, force: bool
) -> str:
    """Say why a path must stay; empty if it may go back, or has nothing to go back to."""
    if current == base:
        return ""
    if current is not None and current.content == UNREADABLE:
        return HIDDEN
    if current != chain.left and not force:
        return CHANGED_SINCE
    if chain.is_unsure and not force:
        return UNSURE
    return "" if base is None or base.is_kept else NO_COPY[base.kind]


def changed_chains(touches: Iterable[PathChange]) -> list[tuple[str, _Chain]]:
    """Return the chains of the paths that are not as they were, in order; without bare folders."""
    found = sorted(chains(touches).items())
    return [
        (path, chain)
        for path, chain in found
        if chain.first != chain.left and not is_bare_folder(chain)
    ]
