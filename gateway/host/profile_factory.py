"""Makes the profiles of sessions from the configuration: agents, external agents, workflows, judges.

A profile has the agent's model, its system prompt and tools, and the policies of its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import convert
from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.errors import ConfigError, UsageError
from ...machines.policy import (
    CompactionPolicy,
    DelegationPolicy,
    GoalPolicy,
    Limits,
    Policy,
    ResultLimits,
    RoutesChoice,
)
from ...machines.routes import Routes
from ...ports.external_agent import DRIVEN, AgentSpec
from ...ports.judging import INSTRUCTIONS, JudgeSeat
from ...ports.models.choice import Choice, build, choose, model_named, probe_loopback
from ...ports.models.model import Model
from ...ports.models.provider import ModelConfig, model_configs, provider_of
from ...ports.models.repetition import UnrepeatedModel
from ...ports.tools.permission import Permissions, Rule
from ...workflows.config import Config
from ...workflows.paths import Paths
from ...workflows.plugins import AGENTS
from ...workflows.providers import is_small
from ...workflows.settings import AgentSettings
from ...workflows.tools import REMOTE, TOOLS
from ..running import RunPlan, included_plan, plan_of, run_profile
from ..views.permission import holds_of, rules_of
from .fitted_profile import OwnAgent, is_small_prompt, made_small, wants_small
from .router import routes_of

if TYPE_CHECKING:
    from .host import Host

UNBOUNDED = 1_000_000
"""Steps of a turn of an external agent, which has a limit of its own."""
STEERING = """
`[New message from NAME] TEXT` within a turn is the person, who speaks while you work. It cancels \
nothing: work it in if that is possible, else {otherwise}."""


# Goals --------------------------------------------------------------------------------------------


def goal_policy(config: Config, choice: Choice | None) -> GoalPolicy:
    """Return the policy of goals; `choice` is the model of a judge for which none is configured."""
    goals = config.goals
    own = config.models.get(config.agent(goals.judge).model)
    provider = own.provider if own is not None else choice.config.provider if choice else None
    decides = provider is not None and is_small(provider)
    return replace(convert(goals, GoalPolicy, from_attributes=True), gates_decide=decides)


# External agents ----------------------------------------------------------------------------------


def external_agent(
    name: str, config: Config, paths: Paths, environ: Mapping[str, str]
) -> AgentSpec | None:
    """Return how an external agent is started; none if the agent is not external or not known.

    The start command is configured, or comes from the agent's definition. Raises `UsageError` if
    neither has one.
    """
    known = config.agents.get(name)
    if known is not None and known.protocol != "acp":
        return None
    from ...workflows.agent_definition import find_agent, load_agents

    agents = load_agents(paths)
    if known is not None and known.start:
        program = Path(known.start[0]).name
        same = (agent.name for agent in agents.values() if program in agent.acp[:1])
        return AgentSpec(name, known.start, {**environ, DRIVEN: next(same, name)})
    names = {known_name for agent in agents.values() for known_name in (agent.name, *agent.aliases)}
    if name in names and (found := find_agent(agents, name)).acp:
        return AgentSpec(name, found.acp, {**environ, DRIVEN: found.name})
    if known is None:
        return None
    raise UsageError(
        f"there is no start command for agent `{name}`",
        f'set `agents.{name}.start`, for example start = ["{name}", "acp"]',
    )


def as_external(profile: AgentProfile) -> AgentProfile:
    """Return the profile for an external agent, which has its own instructions, tools and limits."""
    permissions = profile.permissions
    return replace(
        profile,
        system="",
        tools=(m.AGENT_TOOL,),
        max_steps=UNBOUNDED,
        permissions=permissions.with_rules((Rule(m.AGENT_TOOL, "*", "allow"), *permissions.rules)),
        policy=replace(profile.policy, steer_while_streaming="cut"),
        compaction=replace(profile.compaction, is_auto=False),
    )


# Profiles -----------------------------------------------------------------------------------------


class ProfileFactory:
    """Makes profiles from the configuration and the launch options; builds each model once, at need.

    `choice` is the model that was chosen last.
    """

    def __init__(self, host: Host, environ: Mapping[str, str]) -> None:
        self.choice: Choice | None = None
        self._paths, self._config, self._launch = host.paths, host.config, host.launch
        self._host, self._environ, self._note = host, environ, host.note
        self._tools = host.runtime.shared.toolbox.names
        self._models: dict[str, Any] = {}
        self._own: dict[str, OwnAgent] = {}

    def introduce(self, name: str, agent: OwnAgent) -> None:
        """Let a name mean an agent that the program brings, from now on."""
        agents = {**self._config.agents, name: agent.settings}
        self._config = replace(self._config, agents=agents)
        self._own[name] = agent

    def own_model(self, agent: str) -> Model | None:
        """Return the model that the program brought along with an agent; none for one by name."""
        known = self._own.get(agent)
        return known.model if known is not None else None

    def profile(self, name: str) -> AgentProfile:
        """Return an agent by its name. Raises `UsageError` or `ConfigError`."""
        return self._profile(name, None, self._launch.model)

    def child(self, name: str, parent: SessionRecord) -> AgentProfile:
        """Return an agent that works for a session: with its model, unless it has one of its own.

        What was asked for at the start is for all agents.
        """
        settings = self._config.agents.get(name)
        has_own = settings is not None and settings.model and name != parent.agent
        chosen = parent.asked_model if has_own else parent.wanted_model
        return self._profile(name, None, self._launch.model, chosen)

    def idle(self, record: SessionRecord) -> AgentProfile:
        """Return the profile that owns a queue in which nothing can run, with the session's limits."""
        settings = self._config.agents
        is_configured = record.run is None and record.agent in settings
        agent = settings[record.agent if is_configured else self._config.default_agent]
        return AgentProfile(
            name=record.agent,
            model=None,
            system=record.system,
            tools=(),
            permissions=Permissions(rules_of(self._config), holds=holds_of(self._config)),
            policy=self._policy(agent),
            limits=self._limits(agent),
        )

    def run(
        self, plan: RunPlan, routes: RoutesChoice | None = None, asked: str = ""
    ) -> AgentProfile:
        """Return the profile of a run, in which a workflow takes the place of an agent.

        `asked` is the model that its agents were to have when it began.
        """
        bare = self._profile_with(plan.name, self._config.default_agent, None, routes, None)
        bare = replace(bare, asked_model=self._launch.model or asked)
        return run_profile(bare, plan, self._config)

    def included(self, name: str, above: AgentProfile, task: str) -> AgentProfile:
        """Return the profile of a workflow that is a step of another; `task` is the text of the step."""
        assert above.workflow is not None
        plan = included_plan(name, above.workflow, task, self._paths)
        return self.run(plan, asked=above.asked_model)

    def of_record(self, record: SessionRecord) -> AgentProfile:
        """Return the profile that resumes a session, with the session's system prompt and tools."""
        if record.run is not None:
            return self.run(plan_of(record.run.workflow), record.routes, record.asked_model)
        chosen = record.wanted_model or self._named_at_start(record)
        self._introduce_again(record)
        profile = self._profile(record.agent, record.routes, self._launch.model, chosen)
        if record.imported_from:
            return profile
        if self._is_of_another_kind(record, profile):
            return replace(profile, is_refit=True)
        own = [tool.schema.name for tool in profile.own_tools]
        there = {*self._tools, *own, m.AGENT_TOOL}
        known = tuple(name for name in record.tools if name in there or name in TOOLS)
        missing = [
            name for name in record.tools if name not in known and not name.startswith(REMOTE)
        ]
        if missing:
            self._note(f"The session's tools `{'`, `'.join(missing)}` are not there any more")
        return replace(profile, system=record.system, tools=known)

    def _named_at_start(self, record: SessionRecord) -> str:
        """Return the name of the model that a session began with, if it still means one.

        An agent that the program brings has the model that it brings now.
        """
        name = record.model_name if record.agent not in self._own else ""
        try:
            if name:
                model_named(name, model_configs(self._config.models), self._paths.cache)
        except ConfigError:
            self._note(f"The session's model `{name}` is not configured here any more")
            return ""
        return name

    def _introduce_again(self, record: SessionRecord) -> None:
        """Let an agent that is not known here be what the session's record says of it."""
        name = record.agent
        is_known = name in self._config.agents or name in AGENTS.by_name
        if is_known or external_agent(name, self._config, self._paths, self._environ) is not None:
            return
        settings = self._config.agents[self._config.default_agent]
        again = replace(settings, system=record.system, tools=record.tools, model="")
        self.introduce(name, OwnAgent(settings=again))
        self._note(
            f"The agent `{name}` is not configured here: the session goes on with the instructions and "
            "the tools that it began with; code of its own is missing"
        )

    def fitted(self, record: SessionRecord, model: str) -> tuple[AgentProfile, Choice | None]:
        """Return the profile of a session with another model. Raises `SteersmanError`."""
        choice = self._choose("", "", model)
        provider_of(choice.config).check(choice.config, self._paths.cache)
        profile = self._profile(record.agent, record.routes, "", model)
        is_refit = self._is_of_another_kind(record, profile)
        return replace(profile, is_refit=is_refit), self.choice

    def _is_of_another_kind(self, record: SessionRecord, profile: AgentProfile) -> bool:
        """Whether a session has instructions for small models and the model is none, or the reverse."""
        if m.AGENT_TOOL in record.tools or record.agent in self._own:
            return False
        return is_small_prompt(record.system) != is_small_prompt(profile.system)

    def unasked(self, name: str) -> AgentProfile:
        """Return an agent whose model is never asked: none is chosen or built. Raises `UsageError`."""
        return self._known(name).fitted(self._profile_with(name, name, None, None, None))

    def routes(self, choice: RoutesChoice) -> Routes:
        """Return the routing tables of a choice. Raises `UsageError`."""
        return routes_of(self._config, choice)[0]

    def model(self, name: str) -> Any:
        """Return a model by its name in the configuration. Raises `UsageError`, `ConfigError`."""
        return self._model("", name)

    def dismiss(self) -> list[Any]:
        """Return the models that were built, which the caller closes, and forget them."""
        built, self._models = list(self._models.values()), {}
        return built

    def _profile(
        self, name: str, routes: RoutesChoice | None, requested: str, chosen: str = ""
    ) -> AgentProfile:
        """Make an agent's profile; `requested` is the model of the command line, `chosen` of `/model`."""
        external = external_agent(name, self._config, self._paths, self._environ)
        if external is not None:
            known = name if name in self._config.agents else self._config.default_agent
            return as_external(self._profile_with(name, known, external, routes, None))
        own = self._known(name)
        model, choice = own.model, None
        if model is None or requested or chosen:
            model = self._model(own.settings.model, requested, chosen)
            choice = self.choice
        profile = self._profile_with(name, name, model, routes, choice)
        if wants_small(own.settings, choice):
            profile = made_small(profile, own.settings)
        else:
            profile = replace(profile, model=UnrepeatedModel(model))
        asked = requested or chosen
        named = choice.name if choice is not None and choice.is_named and not asked else ""
        return own.fitted(replace(profile, asked_model=asked, model_name=named))

    def _known(self, name: str) -> OwnAgent:
        """Return an agent that the configuration, a plug-in or the program has. Raises `UsageError`."""
        if name not in self._config.agents and name in AGENTS.by_name:
            from ..own_agent import own_agent

            agent = AGENTS.load(name)
            with AGENTS.by_name[name].guarded():
                self.introduce(name, own_agent(agent, self._host, None))
        if name not in self._config.agents:
            known = ", ".join(sorted({*self._config.agents, *AGENTS.by_name}))
            raise UsageError(f"there is no agent `{name}`", f"known agents: {known}")
        return self._own.get(name, OwnAgent(settings=self._config.agents[name]))

    def _profile_with(
        self,
        name: str,
        settings: str,
        model: Any,
        chosen_routes: RoutesChoice | None,
        choice: Choice | None,
    ) -> AgentProfile:
        """Make a profile from the settings of an agent; `choice` is none if `model` is external."""
        agent = self._config.agent(settings)
        window = (choice.config.context_window if choice else None) or 0
        tools = tuple(tool for tool in agent.tools if tool in self._tools or tool in TOOLS)
        server_tools = tuple(tool for tool in agent.tools if tool.startswith(REMOTE))
        compaction = self._config.compaction
        otherwise = "hand it back with the tool `defer`" if "defer" in tools else "say so"
        routes, notice = routes_of(self._config, chosen_routes)
        if notice:
            self._note(notice)
        return AgentProfile(
            name=name,
            model=model,
            system=agent.system + STEERING.format(otherwise=otherwise),
            tools=tools,
            server_tools=server_tools,
            max_steps=agent.max_steps,
            permissions=Permissions(
                rules_of(self._config), self._launch.is_yes, holds_of(self._config)
            ),
            policy=self._policy(agent),
            delegation=self._delegation(),
            compaction=CompactionPolicy(
                is_auto=compaction.auto, at=compaction.at, keep=compaction.keep, window=window
            ),
            progress=self._config.progress.policy,
            limits=self._limits(agent),
            result_limits=ResultLimits(
                usual=agent.model_limit or self._config.tools.model_limit,
                tools=tuple(self._config.tools.model_limits.items()),
            ),
            price=choice.config.price if choice else None,
            routes=routes,
            goals=goal_policy(self._config, choice),
            judge=partial(self._judge, model),
        )

    def _limits(self, agent: AgentSettings) -> Limits:
        """Return the limits of a session of an agent: its own, or those of every session."""
        return convert(agent.limits or self._config.limits, Limits, from_attributes=True)

    def _policy(self, agent: AgentSettings) -> Policy:
        """Return how a session of an agent routes messages."""
        queue = self._config.auto_queue
        return Policy(
            busy_mode=agent.busy_input_mode or "steer",
            strategy=agent.interrupt_strategy or "keyword",
            is_auto_queue=queue.enabled,
            max_queue_size=queue.max_queue_size,
            after_interrupt=queue.after_interrupt,
            can_ask=self._launch.can_ask,
            interrupt_at=agent.interrupt_at or "now",
            steer_while_streaming=agent.steer_while_streaming or "wait",
            mode=self._config.permission_mode,
        )

    def _judge(self, worker: Any) -> JudgeSeat:
        """Return the judge of goals, with the judge agent's own model or else the worker's."""
        judge = self._config.agent(self._config.goals.judge)
        config = model_configs(self._config.models).get(judge.model)
        if config is not None:
            worker = self._built(config)
        elif isinstance(worker, AgentSpec):
            worker = self._model(judge.model, self._launch.model)
        return JudgeSeat(model=worker, system=f"{judge.system}\n{INSTRUCTIONS}".strip())

    def _delegation(self) -> DelegationPolicy:
        """Return which agents an agent may call, and how many at a time."""
        agents = {*self._config.agents, *AGENTS.by_name} - {self._config.goals.judge}
        return replace(
            convert(self._config.delegation, DelegationPolicy, from_attributes=True),
            agents=tuple(sorted(agents)),
            detached=self._config.detached,
        )

    def _model(self, agent_model: str, requested: str, chosen: str = "") -> Any:
        self.choice = self._choose(agent_model, requested, chosen)
        return self._built(self.choice.config)

    def _choose(self, agent_model: str, requested: str, chosen: str) -> Choice:
        return choose(
            model_configs(self._config.models),
            agent_model,
            requested,
            self._environ,
            probe_loopback,
            chosen,
        )

    def _built(self, config: ModelConfig) -> Any:
        if config.name not in self._models:
            self._models[config.name] = build(config, self._paths.cache, self._environ)
        return self._models[config.name]
