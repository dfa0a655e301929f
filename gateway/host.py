"""Puts a process together: configuration, store, runtime, event bus, and conversations on them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..actors.agent_profile import AgentProfile
from ..actors.runtime import Runtime
from ..journal.memory import MemoryStore
from ..journal.record import SessionRecord
from ..journal.store import Store
from ..machines.agent_call import AGENT_TOOL
from ..machines.errors import UnknownSession, UsageError
from ..machines.limits import Limits
from ..machines.policy import CompactionPolicy, DelegationPolicy, Policy, RoutesChoice
from ..machines.words import Words
from ..ports.agents.external import AgentSpec
from ..ports.hooks import HookSpec
from ..ports.instructions import CHANGED
from ..ports.judging import JudgeSeat
from ..ports.models.choice import Choice, build, choose, probe_loopback
from ..ports.models.settings import model_configs
from ..ports.tools.permission import Permissions
from ..ports.tools.sandbox import SandboxPolicy
from ..workflows.config import Config
from ..workflows.paths import Paths
from ..workflows.settings import AgentSettings
from .briefing import attachable, instructions_for, is_outdated
from .budget import Budget
from .control import ControlServer
from .conversation import Conversation
from .events import Event, Narrator
from .external_agent import as_external, external_agent
from .first_run import greeting
from .home import open_store
from .hooking import HookedEars, Hooking
from .hub import Hub
from .judge_seat import goal_policy, seat
from .logbook import Logbook
from .mirror import Mirror
from .model_command import Models
from .opening import Opening
from .permission import rules_of
from .queue_file import document
from .restorable import outlived_elsewhere
from .router import Router
from .running import RunPlan, included_plan, plan_of, run_profile
from .saved_queue import announce_other
from .shelf import Shelf

__all__ = ["Host", "Wish"]

STEERING = """
While you work, the person may add a message; it then appears as `[New message from NAME] TEXT`. They \
said it without cancelling what you do: work it in if that is possible; otherwise {otherwise}, and it \
will be taken up next."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asked for, beyond the configuration."""

    agent: str = ""
    model: str = ""
    is_yes: bool = False
    can_ask: bool = False
    is_debug: bool = False


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
        self.choice: Choice | None = None
        self._environ = environ
        tools = config.tools
        hidden = (paths.config, paths.state)
        self._sandbox = SandboxPolicy(tools.sandbox, tools.network, tools.writable, hidden)
        self._models: dict[str, Any] = {}
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
        self.runtime.profile_of_child = self._profile
        self.runtime.profile_of_workflow = self._profile_of_workflow
        self.runtime.ears_of_child = self.narrator
        queue = config.auto_queue
        self.shelf = Shelf(self.runtime, queue.max_queue_size, self._quiet_narrator)
        if queue.persistence.enabled:
            folder = Path(queue.persistence.path or paths.state / "queues").expanduser()
            self._mirror = Mirror(folder, self._complain)
            self.hub.subscribe(self._copy)
        self._budget = Budget(paths.state, store, config.checkpoints.budget, self._complain)
        self._words = Words(queue.interrupt_keywords, queue.steer_keywords, queue.filler_words)
        self._router = Router(config, self._words)

    @property
    def store(self) -> Store:
        """The home's store."""
        return self.runtime.store

    @property
    def is_kept(self) -> bool:
        """Whether what happens here is on disk, and there at the next start."""
        return self.config.auto_queue.persistence.enabled

    def begin(self, folder: Path, plan: RunPlan | None = None) -> Conversation:
        """Begin a new session in a folder; with a `plan` it is a workflow's run."""
        self._welcome(folder)
        if plan is not None:
            profile = self._run_profile(plan)
        else:
            profile = self._profile(self.wish.agent or self.config.default_agent)
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
        live = self.runtime.open_existing(session, self._profile_of, self._ears)
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
            session, self._idle_profile, self.narrator, is_caretaker=True
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
        self._budget.wait()
        self._hooking.drain()
        while self._models:
            _, model = self._models.popitem()
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

    def _complain(self, text: str) -> None:
        """Tell the listeners of every open session what goes wrong around them."""
        for session in tuple(self.conversations):
            self.narrator(session).say("notice", text=text)

    def _quiet_narrator(self, session: str) -> Narrator:
        """Give a voice that only the readable copy hears."""
        return Narrator(session, self._copy, time.time)

    def _idle_profile(self, record: SessionRecord) -> AgentProfile:
        policy = Policy(max_queue_size=self.config.auto_queue.max_queue_size)
        rules = Permissions(rules_of(self.config))
        return AgentProfile(record.agent, None, record.system, (), permissions=rules, policy=policy)

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
        conversation.models = Models(tuple(self.config.models), self._fitted)
        self.conversations[session] = conversation
        return conversation

    def _run_profile(self, plan: RunPlan, choice: RoutesChoice | None = None) -> AgentProfile:
        """Return what stands where an agent would: a workflow."""
        bare = self._profile_without_model(plan.name, self.config.default_agent, None, choice)
        return run_profile(bare, plan, self.config)

    def _profile_of_workflow(self, name: str, above: AgentProfile, said: str) -> AgentProfile:
        """Return a workflow that is a step of another."""
        assert above.workflow is not None
        plan = included_plan(name, above.workflow, said, self.paths)
        return self._run_profile(plan)

    def _profile_of(self, record: SessionRecord) -> AgentProfile:
        if record.run is not None:
            return self._run_profile(plan_of(record.run.workflow), record.routes)
        profile = self._profile(record.agent, record.routes, record.chosen_model)
        names = (*self.runtime.toolbox.names, AGENT_TOOL)
        known = tuple(name for name in record.tools if name in names)
        return replace(profile, system=record.system, tools=known)

    def _fitted(self, record: SessionRecord, model: str) -> tuple[AgentProfile, Choice | None]:
        """Return what a session's agent is with another model. Raises `SteersmanError`."""
        wish, self.wish = self.wish, replace(self.wish, model="")
        try:
            return self._profile(record.agent, record.routes, model), self.choice
        finally:
            self.wish = wish

    def _profile(
        self, name: str, choice: RoutesChoice | None = None, chosen: str = ""
    ) -> AgentProfile:
        external = external_agent(name, self.config, self.paths, self._environ)
        if external is not None:
            known = name if name in self.config.agents else self.config.default_agent
            return as_external(self._profile_without_model(name, known, external, choice))
        if name not in self.config.agents:
            known = ", ".join(sorted(self.config.agents))
            raise UsageError(f"there is no agent `{name}`", f"known agents: {known}")
        model = self._model(self.config.agent(name).model, chosen)
        return self._profile_without_model(name, name, model, choice)

    def _profile_without_model(
        self, name: str, settings: str, model: Any, choice: RoutesChoice | None
    ) -> AgentProfile:
        agent = self.config.agent(settings)
        window = (self.choice.config.context_window if self.choice else None) or 0
        tools = tuple(one for one in agent.tools if one in self.runtime.toolbox.names)
        queue, compaction = self.config.auto_queue, self.config.compaction
        policy = Policy(
            agent.busy_input_mode or "interrupt",
            agent.interrupt_strategy or "keyword",
            queue.enabled,
            queue.max_queue_size,
            queue.after_interrupt,
            self.wish.can_ask,
            interrupt_at=agent.interrupt_at or "now",
            steer_while_streaming=agent.steer_while_streaming or "wait",
        )
        routes, notice = self._router.routes(choice)
        if notice and notice not in self.notices:
            self.notices.append(notice)
        return AgentProfile(
            name,
            model,
            agent.system + STEERING.format(otherwise=_otherwise(tools)),
            tools,
            agent.max_steps,
            Permissions(rules_of(self.config), self.wish.is_yes),
            policy,
            self._delegation(),
            CompactionPolicy(compaction.auto, compaction.at, compaction.keep, window),
            self._limits(agent),
            self.choice.config.price if self.choice else None,
            routes,
            goal_policy(self.config, self.choice),
            partial(self._judge, model),
        )

    def _limits(self, agent: AgentSettings) -> Limits:
        """Say what a session of an agent may use: as the agent says, else as is said for all."""
        given = agent.limits or self.config.limits
        return Limits(given.max_tokens, given.max_cost, given.max_minutes)

    def _judge(self, worker: Any) -> JudgeSeat:
        """Give whoever judges goals: an agent's own model, or that of the one who works."""
        name = self.config.agent(self.config.goals.judge).model
        config = model_configs(self.config.models).get(name)
        if config is not None and name not in self._models:
            self._models[name] = build(config, self.paths.cache, self._environ)
        worker = self._model(name) if isinstance(worker, AgentSpec) else worker
        return seat(self.config, self._models[name] if config is not None else worker)

    def _delegation(self) -> DelegationPolicy:
        """Say whom an agent may call, and how many."""
        delegation, agents = self.config.delegation, self.config.agents
        return DelegationPolicy(
            tuple(sorted(agents)),
            max_depth=delegation.max_depth,
            max_children=delegation.max_children,
            when_full=delegation.when_full,
            detached=tuple(
                sorted(name for name, one in agents.items() if one.on_parent_interrupt == "detach")
            ),
            steer_deadline=delegation.steer_deadline,
            wrap_up=delegation.wrap_up,
            timeout=delegation.timeout,
        )

    def _model(self, agent_model: str, chosen: str = "") -> Any:
        choice = choose(
            model_configs(self.config.models),
            agent_model,
            self.wish.model,
            self._environ,
            probe_loopback,
            chosen,
        )
        self.choice = choice
        if choice.config.name not in self._models:
            self._models[choice.config.name] = build(choice.config, self.paths.cache, self._environ)
        return self._models[choice.config.name]


def _otherwise(tools: tuple[str, ...]) -> str:
    """Say what an agent does with a message that it can't work in."""
    return "hand it back with the tool `defer`" if "defer" in tools else "say so"
