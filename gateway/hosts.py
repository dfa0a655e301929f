"""The hosts of a program that runs the sessions of many folders.

Each folder may have a configuration of its own, and a host has one; folders with the same share a host.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..actors.environment import Observer
from ..journal.recovery import load_record
from ..journal.store import SessionRow, Store
from ..machines.errors import SteersmanError, UsageError
from ..machines.permission_mode import mode_named
from ..workflows.config import Config, load
from ..workflows.paths import Paths
from .client import SessionClient
from .events.contract import ChangedEvent, Event
from .home.home import existing_folder, find_in, refuse_run
from .host.host import Host
from .host.router import EventBus
from .launch_options import LaunchOptions
from .running import config_of_run, read_run
from .wording.first_run import rights_line

ENDING = 0.1
"""Seconds between two looks at a run that has ended, whose subagents may still be closing."""


class Hosts:
    """The hosts of one program, by configuration; `event_bus` has the events of all their sessions.

    `launch` is how its sessions are opened where nothing else is asked for. `on_host` gets each host that
    is made; `recorders` observe all sessions. May be used by several threads.
    """

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        launch: LaunchOptions,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        self.paths = paths
        self._environ = environ
        self._launch = launch
        self._overrides = dict(overrides or {})
        self.event_bus = EventBus()
        self.recorders: tuple[Observer, ...] = ()
        self.on_host: Callable[[Host], None] = lambda _: None
        self._hosts: list[Host] = []
        self._mutex = threading.Lock()
        self._is_closed = False

    def of_folder(self, folder: Path, launch: LaunchOptions | None = None) -> Host:
        """Return the host for a folder's configuration. Raises `ConfigError`."""
        wanted = launch or self._launch
        return self._with(load(self.paths, folder, self._environ, self._overrides), wanted)

    def _with(self, config: Config, wanted: LaunchOptions) -> Host:
        """Return the host that has a configuration."""
        with self._mutex:
            if self._is_closed:
                raise UsageError("this program ends and opens no session any more")
            for host in self._hosts:
                if host.launch == wanted and host.config == config:
                    return host
            host = Host(self.paths, config, self._environ, wanted)
            host.event_bus.subscribe(self.event_bus.publish)
            host.endpoint.opening = self.open_for
            host.observers.recorders = self.recorders
            self.on_host(host)
            self._hosts.append(host)
            return host

    def begin(
        self,
        folder: Path,
        agent: str = "",
        launch: LaunchOptions | None = None,
        session: str = "",
    ) -> SessionClient:
        """Begin a session in a folder, with this id if one is given. Raises `SteersmanError`."""
        place = existing_folder(folder)
        return self.of_folder(place, launch).begin(place, agent=agent, session=session)

    def begin_run(
        self,
        workflow: str,
        variables: Mapping[str, Any],
        folder: Path,
        session: str = "",
        launch: LaunchOptions | None = None,
    ) -> SessionClient:
        """Open a run of a workflow, by name or file, in a folder; `go_on` starts it.

        When it has ended, its listeners hear what it changed, and it is left, so that it can be resumed
        from anywhere. Raises `SteersmanError`.
        """
        place = existing_folder(folder)
        plan, config = read_run(workflow, variables, place, self.paths, self._environ)
        host = self._with(config, launch or self._launch)
        return self._until_over(host, host.begin(place, plan, session=session))

    def resume_run(self, session: str, launch: LaunchOptions | None = None) -> SessionClient:
        """Take up a run by its whole id, as `begin_run`; nothing in it runs unasked.

        Raises `SteersmanError`.
        """
        found = self.find(session)
        if found is not None:
            return found
        host = self.of_run(session, launch)
        return self._until_over(host, host.resume(session))

    def of_run(self, session: str, launch: LaunchOptions | None = None) -> Host:
        """Return the host for a run by its whole id. Raises `SteersmanError`."""
        record = load_record(self.store, session)
        if record.run is None:
            raise UsageError(f"session `{session}` is no run", "`steersman sessions list`")
        folder = Path(record.folder)
        config = config_of_run(record.run.workflow, folder, self.paths, self._environ)
        return self._with(config, launch or self._launch)

    def _until_over(self, host: Host, run: SessionClient) -> SessionClient:
        """Return a run that is left when it has ended."""

        def hear(event: Event) -> None:
            if event["type"] == "run_ended" and event["session"] == run.session:
                unsubscribe()
                threading.Thread(target=leave, name="end-of-run", daemon=True).start()

        def leave() -> None:
            while not run.is_quiet():
                time.sleep(ENDING)
            publisher = run.publisher
            event = ChangedEvent(type="changed", **publisher.stamp(), files=run.changes())
            publisher.publish(event)
            self.leave(run)

        unsubscribe = host.event_bus.subscribe(hear)
        return run

    def leave(self, conversation: SessionClient) -> None:
        """Leave a session, unless that has happened."""
        host = self.host_of(conversation.session)
        if host is not None:
            conversation.leave()
            host.conversations.pop(conversation.session, None)

    def hosts(self) -> tuple[Host, ...]:
        """Return those that there are now."""
        return tuple(self._hosts)

    def resume(self, session: str, launch: LaunchOptions | None = None) -> SessionClient:
        """Take up a session, or return it if it is open here. Raises `SteersmanError`."""
        row = self.row(session)
        found = self.find(row.session)
        if found is not None:
            return found
        refuse_run(row)
        return self.of_folder(Path(row.folder), launch).resume(row.session)

    def open_for(self, params: dict[str, Any]) -> dict[str, Any]:
        """Open a session for another program: `{folder, agent, model, is_yes, mode}`, or `{resume}`.

        A run is one of `{workflow, variables, folder}`, or `{resume_run}` with its whole id. What was
        noticed meanwhile is in the answer: nobody follows the session yet.
        """
        noticed: list[Event] = []
        stop_noting = self.event_bus.subscribe(noticed.append)
        try:
            return self._opened_for(params, noticed)
        finally:
            stop_noting()

    def _opened_for(self, params: dict[str, Any], noticed: list[Event]) -> dict[str, Any]:
        launch = replace(
            self._launch,
            agent=str(params.get("agent") or ""),
            model=str(params.get("model") or ""),
            is_yes=params.get("is_yes") is True,
            mode=mode_named(str(params["mode"])) if params.get("mode") else "",
        )
        if resume := params.get("resume"):
            conversation = self.resume(str(resume), launch)
        elif resume_run := params.get("resume_run"):
            conversation = self.resume_run(str(resume_run), launch)
        elif workflow := params.get("workflow"):
            given, folder = dict(params.get("variables") or {}), Path(str(params["folder"]))
            conversation = self.begin_run(str(workflow), given, folder, launch=launch)
        else:
            conversation = self.begin(Path(str(params["folder"])), launch=launch)
        host = self.host_of(conversation.session)
        assert host is not None
        notices = [host.choice.line] if host.choice is not None else []
        notices.append(rights_line(conversation.describe(), host.opener.sandbox))
        for event in noticed:
            if event["type"] == "notice" and event["session"] == conversation.session:
                notices.append(event["text"])
        return {"session": conversation.session, "notices": notices}

    def host_of(self, session: str) -> Host | None:
        """Return the host that has a session open; none if none has."""
        having = (host for host in self.hosts() if host.open_conversation(session) is not None)
        return next(having, None)

    def with_live(self, session: str) -> Host | None:
        """Return the host in which a session lives, also as a subagent; none if none has it."""
        return next((host for host in self.hosts() if host.runtime.is_open(session)), None)

    def find(self, session: str) -> SessionClient | None:
        """Return the conversation about a session that is open here, by its whole id."""
        host = self.host_of(session)
        return host.conversations[session] if host is not None else None

    @property
    def store(self) -> Store:
        """The home's store. There is a host by then."""
        return self._hosts[0].store

    @property
    def nodes(self) -> set[str]:
        """The nodes that this program is in its home: one a host."""
        return {host.runtime.node for host in self.hosts()}

    def row(self, session: str) -> SessionRow:
        """Find a session by its id, the beginning of it, its name, or `last`. Raises `UsageError`."""
        try:
            return self.store.load(session).row
        except SteersmanError:
            return find_in(self.store, session)

    def suspend(self) -> None:
        """Suspend every session, and open none any more. Idempotent."""
        with self._mutex:
            self._is_closed = True
        for host in self.hosts():
            host.runtime.leave_all()

    def close(self) -> None:
        """Suspend every session, and end every host. Idempotent."""
        with self._mutex:
            self._is_closed = True
            hosts, self._hosts = self._hosts, []
        for host in hosts:
            host.close()
