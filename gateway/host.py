"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..actors.runtime import AgentProfile, Runtime
from ..journal.memory import MemoryStore
from ..journal.record import SessionRecord
from ..journal.store import Store
from ..machines.errors import UnknownSession, UsageError
from ..machines.policy import Policy
from ..machines.words import Words
from ..ports.models.choice import Choice, build, choose, probe_loopback
from ..ports.models.settings import model_configs
from ..ports.tools.permission import Permissions, Rule
from ..workflows.config import Config
from ..workflows.paths import Paths
from .conversation import Conversation
from .events import Narrator
from .home import open_store
from .hub import Hub
from .opening import Opening

__all__ = ["Host", "Wish"]

STEERING = """
While you work, the person may add a message; it then appears as `[New message from NAME] TEXT`. They \
said it without cancelling what you do: work it in if that is possible; otherwise say so, and it will \
be taken up next."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asked for, beyond the configuration."""

    agent: str = ""
    model: str = ""
    is_yes: bool = False
    can_ask: bool = False


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
        self.choice: Choice | None = None
        self._environ = environ
        self._models: dict[str, Any] = {}
        self.conversations: dict[str, Conversation] = {}
        store = open_store(paths) if config.auto_queue.persistence.enabled else MemoryStore()
        self.runtime = Runtime(
            store,
            grace=config.tools.grace,
            output_limit=config.tools.output_limit,
            spill=paths.state / "output",
        )
        queue = config.auto_queue
        self._words = Words(queue.interrupt_keywords, queue.steer_keywords, queue.filler_words)

    @property
    def store(self) -> Store:
        """The home's store."""
        return self.runtime.store

    def begin(self, folder: Path) -> Conversation:
        """Begin a new session in a folder."""
        profile = self._profile(self.wish.agent or self.config.default_agent)
        live = self.runtime.open_new(folder, profile, self.narrator)
        self._opening.wait(live.id)
        return self._conversation(live.id, folder)

    def resume(self, session: str) -> Conversation:
        """Take up a session; nothing in it runs until somebody says so."""
        live = self.runtime.open_existing(session, self._profile_of, self.narrator)
        self._opening.wait(live.id)
        return self._conversation(live.id, Path(live.record.folder))

    def conversation(self, session: str) -> Conversation:
        """Return the conversation about a session that is open here. Raises `UnknownSession`."""
        found = self.conversations.get(session)
        if found is None or session not in self.runtime.sessions:
            raise UnknownSession(f"session `{session}` is not open here", "try again")
        return found

    def narrator(self, session: str) -> Narrator:
        """Give a session its voice on the event bus."""
        return Narrator(session, self.hub.publish, time.time)

    def close(self) -> None:
        """Leave all sessions, end all processes, close the store. Idempotent."""
        self.runtime.leave_all()
        while self._models:
            _, model = self._models.popitem()
            self.runtime.run(model.aclose())
        self.runtime.close()

    def _conversation(self, session: str, folder: Path) -> Conversation:
        conversation = Conversation(
            self.runtime,
            session,
            self._words,
            self.narrator,
            lambda: self.begin(folder).session,
        )
        self.conversations[session] = conversation
        return conversation

    def _profile_of(self, record: SessionRecord) -> AgentProfile:
        profile = self._profile(record.agent)
        known = tuple(name for name in record.tools if name in self.runtime.toolbox.names)
        return replace(profile, system=record.system, tools=known)

    def _profile(self, name: str) -> AgentProfile:
        if name not in self.config.agents:
            known = ", ".join(sorted(self.config.agents))
            raise UsageError(f"there is no agent `{name}`", f"known agents: {known}")
        agent = self.config.agent(name)
        model = self._model(agent.model)
        tools = tuple(one for one in agent.tools if one in self.runtime.toolbox.names)
        queue = self.config.auto_queue
        policy = Policy(
            agent.busy_input_mode or "interrupt",
            agent.interrupt_strategy or "keyword",
            queue.enabled,
            queue.max_queue_size,
            queue.after_interrupt,
            self.wish.can_ask,
        )
        rules = [Rule(one.tool, one.match, one.do) for one in self.config.permissions.rules]
        return AgentProfile(
            name,
            model,
            agent.system + STEERING,
            tools,
            agent.max_steps,
            Permissions(rules, self.wish.is_yes),
            policy,
        )

    def _model(self, agent_model: str) -> Any:
        choice = choose(
            model_configs(self.config.models),
            agent_model,
            self.wish.model,
            self._environ,
            probe_loopback,
        )
        self.choice = choice
        if choice.config.name not in self._models:
            self._models[choice.config.name] = build(choice.config, self.paths.cache, self._environ)
        return self._models[choice.config.name]
