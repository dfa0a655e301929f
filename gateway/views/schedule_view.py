"""Schedules as people see them: when each is due next, what came of it last, what would stop it now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import TypedDict, cast

from msgspec.structs import asdict

from ...journal.record import apply
from ...journal.recovery import is_cut_off, load_record, recovered
from ...journal.store import Occurrence, Store
from ...machines.errors import ConfigError, SteersmanError, StoreDamaged, UnknownSession
from ...workflows.config import Config, load
from ...workflows.home_folder import expanded, home_folder
from ...workflows.paths import Paths
from ...workflows.schedules import name_of, next_occurrence
from ...workflows.settings import ScheduleSettings
from ..home.home import find_in, refuse_run
from ..host.profile_factory import external_agent
from ..host.scheduling import client_id_of
from ..outcome import StoredOutcome
from ..running import read_run
from ..wording.formats import iso


class LastOccurrence(TypedDict):
    """What came of a schedule's newest time; `said` are the last words of what that ran."""

    planned: str
    state: str
    outcome: str
    session: str | None
    reason: str | None
    said: str | None
    count: int


class ScheduleNow(TypedDict):
    """A schedule: beside the keys that are set, what came of it and what would stop it now.

    Times are ISO 8601 in UTC.
    """

    name: str
    missed: str
    next: str | None
    last: LastOccurrence | None
    fault: str | None


def schedules_now(
    paths: Paths, environ: Mapping[str, str], store: Store, now: float, zone: tzinfo
) -> list[ScheduleNow]:
    """List the schedules of a person's configuration. Raises `ConfigError`."""
    config = load(paths, home_folder(), environ)
    newest: dict[str, Occurrence] = {}
    for found in store.occurrences():
        known = newest.setdefault(found.schedule, found)
        if (found.noted, found.planned) > (known.noted, known.planned):
            newest[found.schedule] = found
    listed: list[ScheduleNow] = []
    for schedule in config.schedule:
        usual = {**asdict(ScheduleSettings()), "name": schedule.name}
        keys = {key: said for key, said in asdict(schedule).items() if said != usual[key]}
        name, planned = name_of(schedule), next_occurrence(schedule, now, zone)
        last = newest.get(name)
        of_it = ScheduleNow(
            name=name,
            missed=schedule.missed,
            next=iso(planned) if planned is not None else None,
            last=_last(store, last) if last is not None else None,
            fault=fault_of(schedule, config, paths, environ, store) or None,
        )
        listed.append(cast("ScheduleNow", {"name": name, **keys, **of_it}))
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
            refuse_run(find_in(store, schedule.session))
            return ""
        if not folder.is_dir():
            return f"`{folder}` is not a folder"
        if schedule.run:
            read_run(schedule.run, schedule.variables, folder, paths, environ)
        elif schedule.agent and schedule.agent not in config.agents:
            if external_agent(schedule.agent, config, paths, environ) is None:
                return f"there is no agent `{schedule.agent}`"
    except ConfigError as error:
        return str(error).splitlines()[0]
    except SteersmanError as error:
        return str(error)
    return ""


def _last(store: Store, found: Occurrence) -> LastOccurrence:
    outcome, said = _became(store, found)
    return LastOccurrence(
        planned=iso(found.planned),
        state=found.state,
        outcome=outcome,
        session=found.session or None,
        reason=found.reason or None,
        said=said or None,
        count=found.count,
    )


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
