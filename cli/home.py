"""`steersman home`: makes a home on PostgreSQL, moves homes, and checks them."""

from __future__ import annotations

import os
from contextlib import closing

from ..gateway.home import open_store, store_at
from ..gateway.home_move import move_home
from ..journal.recovery import load_record
from ..journal.sqlite import SqliteStore
from ..journal.store import Store
from ..machines.errors import StoreError, UsageError
from ..workflows.home_place import home_place
from ..workflows.paths import Paths, make_private
from .output import show, show_document, warn

SQLITE = "sqlite"
"""Names the state folder as the other home of a move."""


def init_home(url: str) -> int:
    """Make the tables of a home. Raises `SteersmanError`."""
    from ..journal.postgres_connection import without_password
    from ..journal.postgres_home import make_home

    is_new, shown = make_home(url), without_password(url)
    show(f"made a home in {shown}" if is_new else f"there is a home in {shown} already")
    if shown != url:
        warn("steersman: the password was visible to all users of this machine while this ran;")
        warn("  `~/.pgpass` or PGPASSFILE keeps it out of command lines and configuration")
    show(f'to use it, set in config.toml: [home] url = "{shown}"')
    return 0


def move(to: str) -> int:
    """Copy the home of the configuration to another one. Raises `SteersmanError`."""
    paths = Paths.of(os.environ)
    here = home_place(paths, os.environ).url
    if (to == SQLITE and not here) or to == here:
        raise UsageError("the home is there already", "`steersman home check` says where")
    with closing(open_store(paths)) as source, closing(_other(to, paths)) as target:
        sessions = entries = 0
        for row, copied in move_home(source, target):
            sessions, entries = sessions + 1, entries + copied
            show(f"{row.session}  {_entries(row.seq)}")
    show(f"{_sessions(sessions)} compared, {_entries(entries)} copied now")
    where = "" if to == SQLITE else to
    from ..journal.postgres_connection import without_password

    shown = without_password(where) if where else ""
    show(f'to use it, set in config.toml: [home] url = "{shown}"; nothing was removed here')
    return 0


def _other(to: str, paths: Paths) -> Store:
    if to == SQLITE:
        return SqliteStore.open(make_private(paths.state))
    if "://" not in to:
        raise UsageError(
            f"`{to[:80]}` is no home",
            f"give the address of a home, or `{SQLITE}` for the state folder",
        )
    return store_at(to, paths)


def check_home(*, as_json: bool) -> int:
    """Fold every session; return 1 if one cannot be read."""
    paths = Paths.of(os.environ)
    faults: dict[str, str] = {}
    with closing(open_store(paths, read_only=True)) as store:
        rows = store.sessions()
        for row in rows:
            try:
                load_record(store, row.session)
                for _ in store.entries(row.session):
                    pass
            except StoreError as error:
                faults[row.session] = error.message
        entries = sum(row.seq for row in rows)
    place = home_place(paths, os.environ).url
    if place:
        from ..journal.postgres_connection import without_password

        place = without_password(place)
    found = {"home": place or str(paths.state), "sessions": len(rows), "entries": entries}
    if as_json:
        show_document({**found, "faults": faults})
        return int(bool(faults))
    show(f"{found['home']}: {_sessions(len(rows))}, {_entries(entries)}")
    for session, fault in faults.items():
        warn(f"{session}: {fault}")
    show("every journal can be read" if not faults else f"damaged: {_sessions(len(faults))}")
    return int(bool(faults))


def _sessions(number: int) -> str:
    return f"{number} session{'s' * (number != 1)}"


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"
