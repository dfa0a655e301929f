"""`steersman schedule`: what the server of a home does at planned times."""

from __future__ import annotations

import os
import time
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from ...gateway.home.home import open_store
from ...gateway.serving import server_of
from ...gateway.wording.formats import one_line
from ...machines.errors import UsageError
from ...workflows.extras import how_to_install
from ...workflows.paths import Paths
from ..output import show, show_document, show_table, warn

if TYPE_CHECKING:
    from ...gateway.views.schedule_view import ScheduleView
from ..options import Json, group

FOLDED = 40
"""Columns of a message in the list."""
SAID = 200
"""Columns of what a schedule's newest session said."""

schedule = group("What `steersman serve` does at planned times.", "steersman schedule list")


@schedule.callback()
def main() -> None:
    """Make `list` a command of its own, although it is the only one."""


@schedule.command("list")
def show_all(as_json: Json = False) -> int:
    """List the schedules: when each happens next, and what came of it last.

    Example: steersman schedule list
    """
    from ...gateway.views.schedule_view import views
    from ...workflows.schedules import SystemZone

    paths = Paths.of(os.environ)
    with closing(open_store(paths, read_only=True)) as store:
        try:
            found = views(paths, os.environ, store, time.time(), SystemZone())
        except ModuleNotFoundError as error:
            raise UsageError(
                f"schedules need the package `{error.name}`", how_to_install("web")
            ) from error
    if as_json:
        show_document({"schedules": [view.data for view in found]})
        return 0

    def row(view: ScheduleView) -> list[str]:
        last = view.last
        came = [_moment(last.planned), view.outcome, last.session] if last else ["-", "-", ""]
        return [view.name, _moment(view.next), *(cell or "-" for cell in came), _what(view)]

    if not found:
        show("there are no schedules; docs/schedules.md shows how to write one")
        return 0
    head = ["name", "next", "last", "outcome", "session", "what"]
    show_table(head, [row(view) for view in found], os.environ)
    for view in found:
        if view.said and view.last is not None:
            show(f"{view.name}, {_moment(view.last.planned)}: {one_line(view.said, SAID)}")
        if view.fault:
            warn(f"{view.name} cannot be carried out: {view.fault}")
        elif view.last is not None and view.last.reason:
            times = f" {view.last.count} times" if view.last.count > 1 else ""
            warn(f"{view.name} {view.last.state}{times}: {view.last.reason}")
        if view.outcome == "interrupted" and view.last is not None:
            way = "run --resume" if view.schedule.run else "chat --resume"
            warn(f"{view.name} was interrupted: `steersman {way} {view.last.session}` goes on")
    if server_of(paths.state) is None:
        warn("no program serves this home, so nothing happens: `steersman serve` starts one")
    return 0


def _moment(moment: float | None) -> str:
    """Write a time as people here read it."""
    return f"{datetime.fromtimestamp(moment):%Y-%m-%d %H:%M}" if moment is not None else "-"


def _what(view: ScheduleView) -> str:
    """Say in a line what a schedule does."""
    schedule = view.schedule
    if schedule.run:
        return f"run {schedule.run}" + (f" in {schedule.folder}" if schedule.folder else "")
    said = one_line(schedule.say, FOLDED)
    return f"say to {schedule.session}: {said}" if schedule.session else f"say: {said}"
