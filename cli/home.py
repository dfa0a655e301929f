"""`steersman home`: makes a home on PostgreSQL, moves homes, checks and salvages them."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from pathlib import Path

from msgspec.structs import asdict

from ..gateway.home.check import Fault, damaged, home_faults
from ..gateway.home.home import open_store, store_at
from ..gateway.home.move import move_home
from ..journal.sqlite import SqliteStore
from ..journal.store import Store
from ..machines.errors import StoreDamaged, UsageError
from ..workflows.home_folder import expanded
from ..workflows.home_place import home_place, storage_of
from ..workflows.paths import Paths, make_private
from .output import show, show_document, warn

SQLITE = "sqlite"
"""Names the state folder as the other home of a move."""


def init_home(url: str) -> int:
    """Make the tables of a home. Raises `SteersmanError`."""
    from ..postgres.connection import without_password
    from ..postgres.home import make_home

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
    from ..postgres.connection import without_password

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
    """Print what is damaged in the home; return 1 if anything is."""
    paths = Paths.of(os.environ)
    place, sessions, entries, faults = checked_home(paths)
    if as_json:
        show_document(
            {
                "home": place,
                "sessions": sessions,
                "entries": entries,
                "faults": [asdict(fault) for fault in faults],
            }
        )
        return int(bool(faults))
    show(f"{place}: {_sessions(sessions)}, {_entries(entries)}")
    for fault in faults:
        warn(fault_line(fault, place))
        warn(f"  {fault.next}")
    show("every journal can be read" if not faults else f"damaged: {_faults(len(faults))}")
    return int(bool(faults))


def checked_home(paths: Paths) -> tuple[str, int, int, list[Fault]]:
    """Check the home; returns where it is, how many sessions and entries it has, and what is damaged."""
    place = home_place(paths, os.environ).url
    if place:
        from ..postgres.connection import without_password

        place = without_password(place)
    shown = place or str(paths.state)
    try:
        with closing(open_store(paths, read_only=True)) as store:
            rows = store.sessions()
            faults = list(home_faults(store, shown, paths, storage_of(paths, os.environ)))
    except StoreDamaged as error:
        return shown, 0, 0, [damaged(error, shown)]
    return shown, len(rows), sum(row.seq for row in rows), faults


def fault_line(fault: Fault, place: str) -> str:
    """Say where a fault is and what it is, on one line; the home itself goes without saying."""
    where = [] if fault.place == place else [fault.place]
    where += [f"{fault.table} {fault.row}".strip()] if fault.table else []
    return ": ".join([*where, fault.what])


def salvage(to: Path | None, *, as_json: bool) -> int:
    """Write what can be read of a damaged home into a new one. Raises `SteersmanError`."""
    from ..gateway.home.salvage import salvage_home

    paths = Paths.of(os.environ)
    if home_place(paths, os.environ).url:
        raise UsageError("only a home in SQLite can be salvaged", "restore the server's backup")
    target = expanded(to or Path(f"{paths.state}-salvaged")).absolute()
    report = salvage_home(paths, target)
    if as_json:
        show_document({"home": str(target), **asdict(report)})
        return 0
    for line in report.lost:
        warn(line)
    show(
        f"{target}: {_sessions(len(report.saved))}, {_entries(report.entries)}, "
        f"{report.messages} unread messages; lost: {len(report.lost) or 'nothing'}"
    )
    show(f"to look at it: STEERSMAN_HOME={shlex.quote(str(target))} steersman sessions list")
    show(f"nothing was changed in {paths.state}")
    return 0


def _faults(number: int) -> str:
    return f"{number} {'fault' if number == 1 else 'faults'}"


def _sessions(number: int) -> str:
    return f"{number} session{'s' * (number != 1)}"


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"
