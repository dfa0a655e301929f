"""A home: its store, and its sessions by the names that people type."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ...journal.revert_record import OVER
from ...journal.sqlite import SqliteStore
from ...journal.store import RowFilter, SessionRow, Store
from ...machines.errors import StoreError, UnknownSession, UsageError
from ...workflows.home_folder import expanded
from ...workflows.home_place import POSTGRES, home_place
from ...workflows.paths import Paths, make_private
from ...workflows.plugins import STORES
from ...workflows.registry import EXTENSIONS

_NEWEST = 50
SHORTEST_ID = 6
"""Digits from which on a number is the id of a session, not the number of a message."""


def open_store(paths: Paths, *, read_only: bool = False) -> Store:
    """Open the home's store: where the configuration says, or SQLite. Raises `StoreError`."""
    if url := home_place(paths, os.environ).url:
        return store_at(url, paths)
    if not read_only:
        make_private(paths.state)
    return SqliteStore.open(paths.state, read_only=read_only)


def store_at(url: str, paths: Paths | None = None) -> Store:
    """Open the home at a URL: PostgreSQL, or a store that is a plug-in.

    `paths` has the configuration with the lease. Raises `UsageError`, `StoreError`, `PlugInError`.
    """
    scheme = url.partition(":")[0]
    if scheme in POSTGRES:
        place = home_place(paths or Paths.of(os.environ), os.environ)
        found: Store = EXTENSIONS.load("postgres").open(url, lease=place.lease, fence=place.fence)
        return found
    if scheme not in STORES.by_name:
        known = ", ".join(f"`{name}:`" for name in STORES.by_name) or "none"
        raise UsageError(
            f"no store is installed for `{scheme}:`",
            f"give the path of a folder, `memory:` or `postgresql:`; installed are {known}",
        )
    make, plug_in = STORES.load(scheme), STORES.by_name[scheme]
    with plug_in.guarded(passes=StoreError, what="cannot be opened"):
        made = make(url)
    methods = [name for name in vars(Store) if not name.startswith("_")]
    missing = [name for name in methods if not hasattr(made, name)]
    if missing:
        kind = type(made).__name__
        raise plug_in.error(f"it made a `{kind}`, which has no `{missing[0]}`")
    store: Store = made
    return store


def find_session(rows: list[SessionRow], name: str, folder: Path | None = None) -> SessionRow:
    """Find a session by `last`, its id, a unique prefix, or its name; `folder` narrows `last`.

    A child is found only if no other session has the prefix. Raises `UnknownSession`, or `UsageError`,
    which names the sessions that fit, where there are several.
    """
    if name == "last":
        # a session without an entry failed to open
        begun = [row for row in rows if row.seq > 0 and not row.parent and not row.is_damaged]
        here = [row for row in begun if folder is None or row.folder == str(folder)]
        open_ones = [row for row in here if row.state != "finalized"] or here
        if open_ones:
            return open_ones[0]
        raise UsageError("there is no session yet", "`steersman chat` starts one")
    found = [row for row in rows if row.session.startswith(name)]
    exact = [row for row in found if row.session == name]
    best = exact or [row for row in found if not row.parent] or found
    if len(best) == 1:
        return best[0]
    called = [row for row in rows if row.name == name] if not found else []
    if len(called) == 1:
        return called[0]
    if not (found or called):
        raise UnknownSession(f"no session `{name}`", "`steersman sessions list` shows them")
    ids = ", ".join(row.session for row in (called or best)[:5])
    hint = "give the id of one" if called else "type more of the id"
    raise UsageError(f"`{name}` fits several sessions: {ids}", hint)


def find_in(store: Store, name: str, folder: Path | None = None) -> SessionRow:
    """Find a session of a store in the same way, and read no more rows than that takes.

    `last` is one of those that a list shows, if there is one.
    """
    rows = candidates(store, name, folder)
    if name == "last":
        owned = store.owners()
        rows = [row for row in rows if row.has_begun or row.session in owned] or rows
    return find_session(rows, name, folder)


def candidates(store: Store, name: str, folder: Path | None = None) -> list[SessionRow]:
    """Read the rows that a name can mean, newest first."""
    if name != "last":
        return store.sessions(RowFilter(begins=name)) or store.sessions(RowFilter(name=name))
    newest = RowFilter(folder=str(folder or ""), is_top=True, most=_NEWEST)
    rows = store.sessions(newest)
    if all(not row.has_begun or row.state == "finalized" or row.is_damaged for row in rows):
        return store.sessions(replace(newest, most=0))
    return rows


def named_session(store: Store, name: str, folder: Path | None = None) -> SessionRow:
    """Find a session as `named_row` does; a row that cannot be read is made again."""
    return whole_row(store, named_row(store, name, folder))


def named_row(store: Store, name: str, folder: Path | None = None) -> SessionRow:
    """Find a session of a store in the same way; a full id is found without reading all rows.

    `last` is the newest of `folder`, if left out of the present one, or of all where that has none.
    """
    with suppress(UnknownSession, UsageError):
        return store.row(name)
    if name == "last":
        with suppress(UsageError, OSError):  # the folder may be gone
            return find_in(store, name, folder or Path.cwd())
    return find_in(store, name)


def whole_row(store: Store, row: SessionRow) -> SessionRow:
    """Return a row; one that cannot be read is made again from the journal. Raises `StoreDamaged`.

    The session's next entry writes it.
    """
    if not row.is_damaged:
        return row
    from ...actors.commits import row_of
    from ...journal.recovery import load_record

    made = row_of(load_record(store, row.session))
    return replace(made, session=row.session, root=row.root, place=row.place)


def depth_of(session: str, parents: Mapping[str, str]) -> int:
    """Return how many ancestors a session has; those that are not known, or its own, are none."""
    seen = [session]
    while (parent := parents.get(seen[-1], "")) in parents and parent not in seen:
        seen.append(parent)
    return len(seen) - 1


def refuse_run(row: SessionRow) -> None:
    """Raise `UsageError` for a workflow's run, which no chat can resume."""
    if row.workflow:
        is_over = row.run in OVER
        resumes = "" if is_over else f"`steersman run --resume {row.session}` resumes it, "
        raise UsageError(
            f"session `{row.session}` is a run of the workflow `{row.workflow}`, not a chat",
            f"{resumes}`steersman sessions show {row.session}` shows it",
        )


def existing_folder(folder: str | Path) -> Path:
    """Return a folder as it is called from everywhere. Raises `UsageError` if there is none."""
    place = expanded(folder).resolve()
    if not place.is_dir():
        raise UsageError(f"`{place}` is not a folder", "make it first, or give another one")
    return place
