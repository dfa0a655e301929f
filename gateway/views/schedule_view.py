"""Schedules as people see them: when each is due next, what came of it last, what would stop it now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TypedDict, cast

from msgspec.structs import asdict

from ...journal.record import apply
from ...journal.recovery import is_cut_off, load_record, recovered
from ...journal.store import Occurrence, Store
from ...machines.errors import ConfigError, SteersmanError, StoreDamaged, UnknownSession
from ...machines.value import Value
from ...workflows.config import Config, load
from ...workflows.home_folder import expanded, home_folder
from ...workflows.paths import Paths
from ...workflows.schedules import name_of, next_occurrence
from ...workflows.settings import ScheduleSettings
from ..home.home import find_session, refuse_run
from ..host.profile_factory import external_agent
from ..host.scheduling import client_id_of
from ..outcome import StoredOutcome
from ..wording.formats import iso


class LastOccurrence(TypedDict):
    """What came of a schedule's newest time."""

    planned: str
    state: str
    outcome: str
    session: str | None
    reason: str | None
    said: str | None
    count: int


class ScheduleNow(TypedDict):
    """A schedule: beside the keys that are set, what came of it and what would stop it now."""

    name: str
    missed: str
    next: str | None
    last: LastOccurrence | None
    fault: str | None


class ScheduleView(Value):
    """A schedule with its next time and its newest occurrence, of which `outcome` says the rest.

    `said` are the last words of what that ran, empty if there are none. `fault` is why the schedule could
    not be carried out now.
    """

    name: str
    schedule: ScheduleSettings
    next: float | None
    last: Occurrence | None
    outcome: str
    said: str
    fault: str

    @property
    def data(self) -> ScheduleNow:
        """The view as JSON data; times are ISO 8601 in UTC."""
        usual = {**asdict(ScheduleSettings()), "name": self.schedule.name}
        keys = {key: said for key, said in asdict(self.schedule).items() if said != usual[key]}
        last: LastOccurrence | None = None
        if self.last is not None:
            last = LastOccurrence(
                planned=iso(self.last.planned),
                state=self.last.state,
                outcome=self.outcome,
                session=self.last.session or None,
                reason=self.last.reason or None,
                said=self.said or None,
                count=self.last.count,
            )
        now = ScheduleNow(
            name=self.name,
            missed=self.schedule.missed,
            next=iso(self.next) if self.next is not None else None,
            last=last,
            fault=self.fault or None,
        )
        return cast("ScheduleNow", {"name": self.name, **keys, **now})


def views(
    paths: Paths, environ: Mapping[str, str], store: Store, now: float, zone: tzinfo
) -> list[ScheduleView]:
    """List the schedules of a person's configuration. Raises `ConfigError`."""
    config = load(paths, home_folder(), environ)
    newest: dict[str, Occurrence] = {}
    for found in store.occurrences():
        known = newest.setdefault(found.schedule, found)
        if (found.noted, found.planned) > (known.noted, known.planned):
            newest[found.schedule] = found
    listed: list[ScheduleView] = []
    for schedule in config.schedule:
        last = newest.get(name_of(schedule))
        outcome, said = _became(store, last) if last is not None else ("", "")
        listed.append(
            ScheduleView(
                name=name_of(schedule),
                schedule=schedule,
                next=next_occurrence(schedule, now, zone),
                last=last,
                outcome=outcome,
                said=said,
                fault=fault_of(schedule, config, paths, environ, store),
            )
        )
    return listed


def fault_of(
    schedule: ScheduleSettings,
    config: Config,
    paths: Paths,
    environ: Mapping[str, str],
    store: Store,
) -> str:
    """Say why a schedule could not be carried out now; empty if it could."""
    try:
        folder = expanded(schedule.folder) if schedule.folder else home_folder()
        if schedule.session:
            refuse_run(find_session(store.sessions(), schedule.session))
            return ""
        if not folder.is_dir():
            return f"`{folder}` is not a folder"
        if schedule.run:
            _check_run(schedule, folder, paths, environ)
        elif schedule.agent and schedule.agent not in config.agents:
            if external_agent(schedule.agent, config, paths, environ) is None:
                return f"there is no agent `{schedule.agent}`"
    except ConfigError as error:
        return str(error).splitlines()[0]
    except SteersmanError as error:
        return str(error)
    return ""


def _check_run(
    schedule: ScheduleSettings, folder: Path, paths: Paths, environ: Mapping[str, str]
) -> None:
    """Raise `SteersmanError` if a workflow cannot be run."""
    from ...workflows.flow.check import Surroundings, checked_workflow
    from ...workflows.flow.variables import bind_values
    from ...workflows.flow.workflow_file import find_workflow

    around = Surroundings(paths=paths, folder=folder, environ=environ)
    spec, _ = checked_workflow(find_workflow(schedule.run, paths, folder), around)
    bind_values(spec, schedule.variables)


def _became(store: Store, found: Occurrence) -> tuple[str, str]:
    """Say in a word what became of an occurrence, and return the last words or the output of what it ran.

    Both as far as the store knows; the words are empty if there are none.
    """
    if found.state != "begun":
        return found.state, ""
    try:
        record = load_record(store, found.session)
    except UnknownSession:
        return "deleted", ""
    except StoreDamaged:
        return "damaged", ""
    name = record.queue.clients.get(client_id_of(found), "")
    past = StoredOutcome(store, found.session, name).look()
    text = past.text if past is not None else ""
    if is_cut_off(record) and not store.is_owned(found.session):
        apply(record, recovered(record), record.seq + 1, record.updated)
    if record.run is None:
        item = record.queue.items.get(name)
        return item.state if item is not None else "begun", text
    if text == f"[{record.run.workflow.name}: done]":
        done = [step.id for step in record.run.steps.values() if step.state == "done"]
        text = f"steps done: {', '.join(done)}"
    return record.run.state, text
