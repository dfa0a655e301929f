"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..actors.runtime import Runtime
from ..journal.memory import MemoryStore
from ..journal.store import Store
from ..machines.errors import UnknownSession
from ..machines.words import Words
from ..ports.hooks import HookSpec
from ..ports.instructions import CHANGED
from ..ports.models.choice import Choice
from ..ports.tools.sandbox import SandboxPolicy
from ..workflows.config import Config
from ..workflows.paths import Paths
from .budget import StorageLimit
from .casting import Casting, Opening, attachable, instructions_for, is_outdated
from .commands.model import Models
from .control import ControlServer
from .conversation import Conversation
from .events.contract import Event, Narrator
from .first_run import greeting
from .home import open_store
from .hooking import HookedEars, Hooking
from .queue_file import document
from .restorable import outlived_elsewhere
from .router import Hub, Router
from .running import RunPlan
from .saved_queue import announce_other
from .scribe import Logbook, Mirror
from .shelf import Shelf
from .wish import Wish


class Host:
    """One process's sessions, models and event bus."""

    def __init__(
        self, paths: Paths, config: Config, environ: Mapping[str, str], wish: Wish
    ) -> None:
        self.paths = paths
        self.config = config
        self.wish = wish
        self.hub = Hub()
        self._opening = Opening()
        self.hub.subscribe(self._opening.hear)
        secrets = tuple(one.api_key_env for one in config.models.values() if one.api_key_env)
        is_debug = wish.is_debug or bool(environ.get("STEERSMAN_DEBUG"))
        self.log = Logbook(paths, environ, secrets, self._complain, is_debug=is_debug)
        self.hub.subscribe(self.log.hear)
        self.notices: list[str] = []
        self._control: ControlServer | None = None
        self._mirror: Mirror | None = None
        tools = config.tools
        hidden = (paths.config, paths.state)
        self._sandbox = SandboxPolicy(tools.sandbox, tools.network, tools.writable, hidden)
        self.conversations: dict[str, Conversation] = {}
        store = open_store(paths) if config.auto_queue.persistence.enabled else MemoryStore()
        self.runtime = Runtime(
            store,
            grace=config.tools.grace,
            output_limit=config.tools.output_limit,
            spill=paths.state / "output",
            visible=config.tools.environment,
            sandbox=self._sandbox,
        )
        specs = [HookSpec(one.on, one.run, one.timeout) for one in config.hooks]
        self._hooking = Hooking(specs, self.runtime, paths.state)
        self.runtime.child_setup.ears_of = self.narrator
        queue = config.auto_queue
        self.shelf = Shelf(self.runtime, queue.max_queue_size, self._quiet_narrator)
        if queue.persistence.enabled:
            folder = Path(queue.persistence.path or paths.state / "queues").expanduser()
            self._mirror = Mirror(folder, self._complain)
            self.hub.subscribe(self._copy)
        self._budget = StorageLimit(paths.state, store, config.checkpoints.budget, self._complain)
        self._words = Words(queue.interrupt_keywords, queue.steer_keywords, queue.filler_words)
        self._router = Router(config, self._words)
        self._casting = Casting(
            paths,
            config,
            environ,
            wish,
            self._router,
            self.runtime.equipment.toolbox.names,
            self._note,
        )
        self.runtime.child_setup.profile_of = self._casting.profile
        self.runtime.child_setup.workflow_of = self._casting.included

    @property
    def store(self) -> Store:
        """The home's store."""
        return self.runtime.store

    @property
    def is_kept(self) -> bool:
        """Whether what happens here is on disk, and there at the next start."""
        return self.config.auto_queue.persistence.enabled

    @property
    def choice(self) -> Choice | None:
        """The model that was chosen last, and why; none before a session was opened."""
        return self._casting.choice

    def begin(self, folder: Path, plan: RunPlan | None = None) -> Conversation:
        """Begin a new session in a folder; with a `plan` it is a workflow's run."""
        self._welcome(folder)
        if plan is not None:
            profile = self._casting.run(plan)
        else:
            profile = self._casting.profile(self.wish.agent or self.config.default_agent)
        found = instructions_for(self.choice, folder, profile.tools, self.paths.config)
        profile = replace(profile, system=profile.system + found.text)
        live = self.runtime.open_new(folder, profile, self._ears)
        self._opening.wait(live.id)
        if said := found.told():
            self.narrator(live.id).say("notice", text=said)
        return self._talk(live.id, folder)

    def resume(self, session: str) -> Conversation:
        """Take up a session; nothing in it runs until somebody says so."""
        self._welcome()
        live = self.runtime.open_existing(session, self._casting.of_record, self._ears)
        self._opening.wait(live.id)
        if is_outdated(live.record, self.paths.config):
            self.narrator(live.id).say("notice", text=CHANGED)
        return self._talk(live.id, Path(live.record.folder))

    def _talk(self, session: str, folder: Path) -> Conversation:
        conversation = self._conversation(session, folder)
        if self.is_kept:
            self._budget.keep()
        return conversation

    def greet(self, session: str) -> None:
        """Tell a person what they are talking to: a screen the first time, then a line."""
        live = self.runtime.sessions[session]
        model = self.choice.line if self.choice is not None else ""
        folder, rules = Path(live.record.folder), live.profile.permissions
        self.notices.insert(0, greeting(self.paths, folder, model, rules, self._sandbox))

    def tend(self, session: str) -> Conversation:
        """Own a session's queue without taking the session up: nothing in it can run here."""
        live = self.runtime.open_existing(
            session, self._casting.idle, self.narrator, is_offline=True
        )
        return self._conversation(live.id, Path(live.record.folder))

    def conversation(self, session: str) -> Conversation:
        """Return the conversation about a session that is open here. Raises `UnknownSession`."""
        found = self.conversations.get(session)
        if found is None or session not in self.runtime.sessions:
            raise UnknownSession(f"session `{session}` is not open here", "try again")
        return found

    def narrator(self, session: str, parent: str = "") -> Narrator:
        """Give a session its voice on the event bus; `parent` is whose child it is."""
        return Narrator(session, self.hub.publish, time.time, parent)

    def _ears(self, session: str) -> HookedEars:
        return HookedEars(self.narrator(session), session, self._hooking)

    def close(self) -> None:
        """Leave all sessions, end all processes, close the store. Idempotent."""
        if self._control is not None:
            control, self._control = self._control, None
            self.runtime.run(control.aclose())
        self.runtime.leave_all()
        self._budget.close()
        self._hooking.drain()
        for model in self._casting.dismiss():
            self.runtime.run(model.aclose())
        self.runtime.close()
        self.log.close()
        if self._mirror is not None:
            self._mirror.close()

    def _welcome(self, folder: Path | None = None) -> None:
        """Before the first session: be reachable, throw away what was outlived, say what is there."""
        if self.conversations or self._control is not None:
            return
        if fault := self._sandbox.notice():
            self.notices.append(fault)
        persistence = self.config.auto_queue.persistence
        if not persistence.enabled:
            self.notices.append(
                "auto_queue.persistence.enabled is false: session and queue are in memory only, "
                "and are lost when this program ends"
            )
            return
        self._listen()
        self.notices += self.shelf.expire(time.time(), persistence.retention_hours)
        self.notices += outlived_elsewhere(self.paths, self.config.restore.retention_hours)
        if folder is not None and (other := announce_other(*self.shelf.newest(folder))):
            self.notices.append(other)

    def _listen(self) -> None:
        """Open the control socket; a place where none can be is told, and keeps nobody from work."""
        control = ControlServer(self)
        try:
            self.runtime.run(control.start())
        except OSError as error:
            self.notices.append(f"other terminals cannot reach this session: {error}")
        self._control = control

    def _copy(self, event: Event) -> None:
        """Have the queue's readable copy written; loop's thread."""
        live = self.runtime.sessions.get(event["session"])
        is_change = event["type"] in ("queue", "progress")
        if self._mirror is not None and live is not None and is_change and not live.parent:
            data = document(live.id, live.record.queue, time.time())
            self._mirror.put(live.id, data)

    def _note(self, text: str) -> None:
        """Keep a notice for whoever is there at the start, once."""
        if text not in self.notices:
            self.notices.append(text)

    def _complain(self, text: str) -> None:
        """Tell the listeners of every open session what goes wrong around them."""
        for session in tuple(self.conversations):
            self.narrator(session).say("notice", text=text)

    def _quiet_narrator(self, session: str) -> Narrator:
        """Give a voice that only the readable copy hears."""
        return Narrator(session, self._copy, time.time)

    def _conversation(self, session: str, folder: Path) -> Conversation:
        conversation = Conversation(
            self.runtime,
            session,
            self._words,
            self.narrator,
            lambda: self.begin(folder).session,
        )
        conversation.shelf = self.shelf
        conversation.router = self._router
        conversation.room = attachable(self.choice)
        conversation.take_up = lambda other: self.resume(other).session
        conversation.models = Models(tuple(self.config.models), self._casting.fitted)
        self.conversations[session] = conversation
        return conversation
