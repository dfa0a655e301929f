"""A session's folder as it can be brought back: looked at around each call, restored when asked.

For our own tools the path that they write is all that is looked at: it is known, so whatever else
changes meanwhile is not the agent's. A command may change anything: the whole folder is looked at
before and after it. Calls may overlap; what changed while several commands ran is entered for the one
that ends first, in the newest turn of them. One thread at a time may use a workspace.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from msgspec.structs import asdict, replace

from ..machines import protocol as m
from ..machines.value import Value
from ..workflows.durability import make_folders, replace_file
from ..workflows.home_folder import home_of_account
from ..workflows.spelling import spelled
from .beside import Foreign, OtherSessions
from .blob_store import LARGEST, BlobStore
from .change_log import ChangeLog, FirstLook, OpenCall, number_of
from .git import GitFault, Repository, ShadowGit, find_git, find_repository, is_whole
from .heartbeat import Heartbeat
from .restore import STAGING, RestoreFailed, reason_of
from .restore_plan import CHANGED_SINCE, PathChange
from .restore_plan import changed_chains as changed
from .reversal import Reversal
from .scan import IGNORE_FILE, Others, PathState, TooMuch, missing_parents
from .scanner import Change, WorkspaceScanner
from .surroundings import UNSEEN, Surroundings

# Whether a folder can be looked at as a whole, and the looker for it ------------------------------


class NotCovered(Exception):
    """The folder is not looked at as a whole; the text says why."""


def make_looker(
    place: Path, folder: Path, session: str, blobs: BlobStore, environ: Mapping[str, str]
) -> WorkspaceScanner:
    """Make a session's looker, whose files lie in `place`. Raises `NotCovered`, `OSError`."""
    program = find_git(environ)
    _check(program, folder, place)
    repository = find_repository(folder)
    index = place / f"index-{session}"
    if repository is not None and _is_ignored(program, place, folder, repository):
        repository = None  # the folder is no part of it
    top = repository.top if repository else folder
    prefix = f"{folder.relative_to(top)}/" if top != folder else ""
    borrowed = repository if repository and repository.can_be_borrowed_from else None
    git = ShadowGit(program, place / "git", top, index)
    git.create(
        ignores_case=folds_case(os.listdir(folder), lambda name: os.path.lexists(folder / name)),
        exclude=repository.exclude if repository else "",
        borrow=borrowed.objects if borrowed else None,
    )
    blobs.fetch = git.fetch
    lender = borrowed.objects if borrowed else None
    side_file = place / f"side-{session}.json"
    make = partial(
        WorkspaceScanner, git, blobs, prefix=prefix, side_file=side_file, repository=repository
    )
    scanner = make(lender=lender)
    try:
        scanner.begin(borrowed, _earlier(place, index))
    except (
        GitFault,
        ValueError,
    ):  # an index that is torn, or of a kind we can't read: begin with none
        index.unlink(missing_ok=True)
        scanner = make()
        scanner.begin(None, None)
    return scanner


def folds_case(names: Iterable[str], is_there: Callable[[str], bool]) -> bool:
    """Whether a folder with these names takes `a` and `A` for one, as far as they tell."""
    listed = set(names)
    other = next((name.swapcase() for name in listed if name.swapcase() not in listed), "")
    return bool(other) and is_there(other)


def _check(program: str, folder: Path, place: Path) -> None:
    if not program:
        raise NotCovered("git is not installed")
    home = home_of_account()
    real = Path(os.path.realpath(home))
    if home and folder in (real, *real.parents):
        raise NotCovered(f"`{folder}` is the home folder, or contains it")
    if place.is_relative_to(folder):
        raise NotCovered(f"`{folder}` contains steersman's own files")


def _is_ignored(program: str, place: Path, folder: Path, repository: Repository) -> bool:
    """Whether the repository ignores the whole folder."""
    if folder == repository.top:
        return False
    git = ShadowGit(program, place / "git", repository.top, place / "index-none")
    git.create(ignores_case=False, exclude=repository.exclude, borrow=None)
    return bool(git.ignored([f"{folder.relative_to(repository.top)}/"], repository.top))


def _earlier(place: Path, own: Path) -> Path | None:
    """Return the newest index of another session here: it knows most."""
    others = [index for index in place.glob("index-*") if index != own and index.suffix != ".lock"]
    others = [index for index in others if is_whole(index)]
    return max(others, key=lambda index: index.stat().st_mtime_ns, default=None)


OWN_LARGEST = 256 << 20
"""Bytes of a file of which a copy is kept when a tool of ours replaces it."""
NAMED = 5
"""Paths that one sentence names; of more it says how many."""
_PATHS = ("restored", "shared", "yours")
MOST_OTHERS = 100
"""Paths that others changed between two looks and that are remembered."""


def listed(names: list[str]) -> str:
    """Write paths as part of a sentence."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    shown = [spelled(name) for name in names[:NAMED]]
    quoted = (name if name.isprintable() else json.dumps(name) for name in shown)
    return ", ".join(f"`{name}`" for name in quoted) + more


class FileChange(Value):
    """What a turn made of a path; bytes are none where there is no file or no copy."""

    path: str
    before: PathState | None
    after: PathState | None
    old: bytes | None
    new: bytes | None


class Workspace:
    """One session's view of its folder; everything of ours lies below `place`.

    `notices` are sentences that a person should read, once.
    """

    def __init__(self, place: Path, folder: Path, session: str, environ: Mapping[str, str]) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.notices: list[str] = []
        self._place = place / _name_of(self.folder)
        self._session = session
        self._environ = environ
        self._git_folder = self._place / "git"
        self.heartbeat = Heartbeat(self._place / f"alive-{session}")
        self._blobs = BlobStore(self._git_folder / "objects")
        self._scanner: WorkspaceScanner | None = None
        self._is_ready = False
        self._why_blind = ""
        self._own: dict[str, PathState | None] = {}
        """What our own tools left since the last look."""
        self._beside: OtherSessions | None = None
        self._told: set[str] = set()
        self._unread: set[str] = set()
        self._opened: Reversal | None = None

    # Around a call --------------------------------------------------------------------------------

    def begin(self, turn: str, call: str, tool: str, path: str | None) -> None:
        """Look, before a call begins; `path` is what it writes, none for a command.

        Never raises for what cannot be kept: it is reported, and the call may go on.
        """
        try:
            self._settle_leftovers()
            if path is None:
                self._begin_command(OpenCall(turn=turn, call=call, tool=tool, is_command=True))
            elif ".git" not in path.split("/") and not path.startswith("/"):
                before = {path: self._blobs.capture(self.folder, path, OWN_LARGEST)}
                before |= dict.fromkeys(missing_parents(self.folder, path))
                self._blobs.sync(before.values())
                self._ledger.begin(
                    OpenCall(turn=turn, call=call, tool=tool, is_command=False, before=before)
                )
        except (OSError, GitFault) as error:
            self._tell(f"Changes by `{tool}` cannot be reverted: {reason_of(error)}")
            with suppress(OSError):
                unseen = OpenCall(turn=turn, call=call, tool=tool, is_command=path is None)
                self._ledger.end(unseen, (), reason_of(error))

    def _begin_command(self, call: OpenCall) -> None:
        scanner, others = self._ready_looker(), self._commands()
        if scanner is not None and others:
            newest = _newest(others)
            if number_of(call.turn) > number_of(
                newest.turn
            ):  # what was until now is not its turn's
                self._enter(scanner, replace(newest, call=f"{newest.call}<{call.call}"))
                if not self._has_begun(call.turn):
                    self._ledger.look(FirstLook(turn=call.turn))
        elif scanner is not None:
            try:
                self._beside = OtherSessions(self._place, self._session)
                self._beside.skip()
                self._look(scanner, call.turn)
                self._own.clear()
                self._tell_unreadable(scanner)
            except TooMuch as limit:
                self._scanner = scanner = None
                self._why_blind = f"the folder holds {limit}"
        if scanner is None:
            self._tell(
                f"Changes by commands cannot be reverted here: {self._why_blind}. "
                "Changes by `write` and `edit` can."
            )
        self._ledger.begin(call)

    def _look(self, scanner: WorkspaceScanner, turn: str) -> None:
        """Look at the folder before a command, and enter what others changed.

        The first look of a turn is at all that is there, and fixes what is ignored.
        """
        if self._has_begun(turn):
            around, changed_since = "", scanner.catch_up()
        else:
            written = {
                touch.path: self._bytes(touch.before) or b""
                for touch in reversed(self._ledger.of([turn]))
                if touch.path.rpartition("/")[2] == IGNORE_FILE
            }
            found, changed_since = scanner.begin_turn(written)
            around = self._blobs.put(json.dumps(asdict(found)).encode())
        others = ((path, was) for path, was in changed_since.items() if path not in self._own)
        first = dict(islice(others, MOST_OTHERS))
        if around or first:
            self._ledger.look(FirstLook(turn=turn, around=around, others=first))

    def _has_begun(self, turn: str) -> bool:
        return any(look.turn == turn for look in self._ledger.looks)

    def end(self, name: str) -> None:
        """Look, after a call has ended, and enter what it changed."""
        call = self._ledger.open.get(name)
        if call is None:
            return
        try:
            if not call.is_command:
                touches = self._own_touches(call)
                self._ledger.end(call, touches)
                self._own |= {touch.path: touch.after for touch in touches}
            elif self._scanner is None:
                self._ledger.end(call, (), self._why_blind)
            else:
                self._enter(self._scanner, replace(call, turn=_newest(self._commands()).turn))
        except (OSError, GitFault, TooMuch) as error:
            self._tell(f"Changes by `{call.tool}` cannot be reverted: {reason_of(error)}")
            with suppress(OSError):
                self._ledger.end(call, (), reason_of(error))

    def _commands(self) -> list[OpenCall]:
        return [call for call in self._ledger.open.values() if call.is_command]

    def _enter(self, scanner: WorkspaceScanner, call: OpenCall) -> None:
        """Enter what changed since the last look, but for what our own tools or other sessions did."""
        beside = self._beside.since() if self._beside else Foreign()
        changes = self._without(beside, call.turn, scanner.changes())
        touches = [call.change(*change, is_shared=True) for change in changes]
        self._blobs.sync(state for touch in touches for state in (touch.before, touch.after))
        self._ledger.end(call, touches)
        scanner.settle()
        if self._beside:
            self._beside.keep()
        self._own.clear()

    def _without(self, beside: Foreign, turn: str, changes: Iterable[Change]) -> list[Change]:
        """Leave out what our own tools and other sessions changed; that of others is entered as such."""
        found = list(changes)
        others = {path: was for path, was, after in found if beside.is_of(path, after)}
        if others:
            first = dict(islice(others.items(), MOST_OTHERS))
            self._ledger.look(FirstLook(turn=turn, others=first))
        left = [
            (path, self._own.get(path, beside.left.get(path, was)), after)
            for path, was, after in found
            if path not in others and not path.startswith(STAGING)
        ]
        return [(path, before, after) for path, before, after in left if before != after]

    def _own_touches(self, call: OpenCall, *, is_unsure: bool = False) -> list[PathChange]:
        touches: list[PathChange] = []
        for path, before in call.before.items():
            after = self._blobs.capture(self.folder, path, OWN_LARGEST)
            if after != before:
                touches.append(call.change(path, before, after, is_unsure=is_unsure))
        return touches

    def _settle_leftovers(self) -> None:
        """Calls that never ended: the program died. What changed since may be anybody's."""
        left, self._ledger.left = self._ledger.left, ()
        commands = [call for call in left if call.is_command]
        for call in left:
            if call not in commands:
                self._ledger.end(call, self._own_touches(call, is_unsure=True))
        if not commands:
            return
        scanner, newest = self._ready_looker(), _newest(commands)
        found = list(scanner.changes()) if scanner is not None and scanner.has_looked else []
        beside = OtherSessions(self._place, self._session).since_the_crash()
        changes = self._without(beside, newest.turn, found)
        touches = self.heartbeat.touches(self.folder, newest, changes)
        for call in commands:
            self._ledger.end(call, touches if call is newest else ())
        if found and scanner is not None:
            scanner.settle()

    # Getting ready --------------------------------------------------------------------------------

    @property
    def _reversal(self) -> Reversal:
        """What can be given back; what a crash cut off is finished when it is opened."""
        if self._opened is None:
            make_folders(self._git_folder / "objects", 0o700)
            os.chmod(self._place.parent, 0o700)
            replace_file(self._place / "folder", os.fsencode(self.folder), 0o600)
            self._opened = Reversal(self._place, self._session, self.folder, self._blobs)
            for name in self._opened.cut_off_elsewhere():
                self._tell(
                    f"A revert of session {name} in this folder was cut off in the middle: "
                    f"`steersman sessions revert {name}` finishes it."
                )
        return self._opened

    @property
    def _ledger(self) -> ChangeLog:
        return self._reversal.ledger

    def _ready_looker(self) -> WorkspaceScanner | None:
        if not self._is_ready:
            _ = self._ledger
            try:
                self._scanner = make_looker(
                    self._place, self.folder, self._session, self._blobs, self._environ
                )
            except NotCovered as reason:
                self._why_blind = str(reason)
            self._is_ready = True
        return self._scanner

    def _tell_unreadable(self, scanner: WorkspaceScanner) -> None:
        fresh = sorted(scanner.unreadable - self._unread)
        if fresh:
            self._unread.update(fresh)
            self._tell(
                f"Changes by commands in {listed(fresh)} cannot be reverted: "
                "these folders cannot be read."
            )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.notices.append(text)

    # Going back -----------------------------------------------------------------------------------

    @property
    def blobs(self) -> BlobStore:
        """The copies of files."""
        return self._blobs

    def changes(self) -> list[PathChange]:
        """Return all changes that no revert gave back, oldest first."""
        return self._ledger.touches()

    def count(self, order: m.RestoreFiles) -> int:
        """Return how many files an order is about."""
        self._settle_leftovers()
        return self._reversal.count(order)

    def revert(self, order: m.RestoreFiles) -> m.RestoreEnded:
        """Carry out an order, or say what it would do. Raises `RestoreFailed`.

        One that was carried out before a crash, or half, is finished and told again.
        """
        try:
            outcome = self._reversal.known(order)
            if outcome is None:
                self._settle_leftovers()
                outcome = self._reversal.carry_out(order)
        except (OSError, GitFault) as error:
            raise RestoreFailed(f"nothing was changed: {reason_of(error)}") from error
        if not self._reversal.is_entered:
            self._opened = None  # where it is opened again, it is finished as after a crash
        if order.scope == "turn" and not order.is_dry_run:
            turns, links = [*(outcome.turns or order.turns)], dict(order.resumed)
            for turn in turns:  # what a turn goes on from is a part of it
                turns += [links[turn]] if links.get(turn, turn) not in turns else []
            outcome = self._checked(outcome, turns)
        lists = {name: tuple(map(spelled, getattr(outcome, name))) for name in _PATHS}
        kept = tuple((spelled(path), why) for path, why in outcome.kept)
        return replace(outcome, kept=kept, **lists)

    def _checked(self, outcome: m.RestoreEnded, turns: Iterable[str]) -> m.RestoreEnded:
        """Look whether all is as it was before these turns, or the last; what is not is named."""
        first = min(
            map(number_of, turns or [look.turn for look in self._ledger.looks[-1:]]), default=0
        )
        try:
            found = self._not_as_before(outcome, first) if first else {}
        except (OSError, GitFault, TooMuch, LookupError) as error:
            found = {UNSEEN: [f"the folder ({reason_of(error)})"]}
        notes = tuple(f"{what}: {listed(names)}" for what, names in found.items())
        left = [*found, *outcome.notes]
        left += [path for path, why in outcome.kept if why != CHANGED_SINCE]  # that is a person's
        is_original = bool(outcome.restored) and not left
        return replace(outcome, notes=(*outcome.notes, *notes), is_original=is_original)

    def _not_as_before(self, outcome: m.RestoreEnded, first: int) -> dict[str, list[str]]:
        """Name what differs from the time before the turn of a number, by what it is."""
        restored = [path.removesuffix("/") for path in outcome.restored]
        known = {*restored, *(path for path, _ in outcome.kept)}
        found: dict[str, list[str]] = {}
        later = {touch.path for touch in self._ledger.touches() if number_of(touch.turn) >= first}
        if left := sorted(later - known):
            found["changes of other turns"] = left
        looks = self._ledger.looks
        begun = next((at for at, look in enumerate(looks) if number_of(look.turn) >= first), None)
        if begun is None:  # no command ran, and of our own tools all is known
            return found
        start = next((look for look in reversed(looks[: begun + 1]) if look.around), None)
        scanner = self._ready_looker()
        if scanner is None or start is None:
            raise GitFault(self._why_blind or "other commands ran when the turn began")
        before = Surroundings(**json.loads(self._blobs.get(start.around)))
        outside, newest = scanner.compare(before, restored)
        others: Others = {}
        for changes in (newest, *(look.others for look in reversed(looks[begun + 1 :]))):
            others |= changes  # the first time that it changed counts
        foreign = (
            path
            for path in others.keys() - known - later - self._reversal.still()
            if self._blobs.capture(self.folder, path, LARGEST, keeps=False) != others[path]
        )
        if names := sorted(foreign):
            found["changes by others"] = names
        return found | outside

    # Showing --------------------------------------------------------------------------------------

    def diff(
        self, turns: Iterable[str] = (), resumed: Iterable[tuple[str, str]] = ()
    ) -> list[FileChange]:
        """Say what these turns changed, or what a revert of the newest would take back."""
        self._settle_leftovers()
        touches = self._ledger.of(turns) if turns else self._ledger.newest(resumed)
        return [
            FileChange(
                path=spelled(path),
                before=one.first,
                after=one.left,
                old=self._bytes(one.first),
                new=self._bytes(one.left),
            )
            for path, one in changed(touches)
        ]

    def changed_files(self, turns: Iterable[str]) -> list[str]:
        """Name the files that these turns changed, sorted; what went back, or is unsure, is left out."""
        found = changed(self._ledger.of(turns))
        return [spelled(path) for path, chain in found if not chain.is_unsure]

    def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn, whose names begin so, left changed; and is that all?"""
        self._settle_leftovers()
        touches = [touch for touch in self._ledger.of([turn]) if touch.call.startswith(calls)]
        return len(changed(touches)), turn not in self._ledger.blind

    def _bytes(self, state: PathState | None) -> bytes | None:
        if state is None or state.kind not in ("file", "link"):
            return None
        with suppress(LookupError):
            return self._blobs.get(state.content)
        return None


def _newest(calls: Iterable[OpenCall]) -> OpenCall:
    return max(calls, key=lambda call: number_of(call.turn))


def _name_of(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
