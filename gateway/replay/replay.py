"""Replays a session of a home, or a file of one, and says where it parts from its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Environment
from ...actors.session_maker import account_of
from ...actors.tool_policy import SessionChoices, SessionToolPolicy
from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.store import StoredEntry
from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from ...machines.errors import ModelError, UsageError
from ...machines.value import Value
from ...ports.models.model import AnswerListener, Model, ModelRequest
from ...ports.tools.permission import Permissions
from ...ports.tools.toolbox import Toolbox
from ...workflows.routing import find_table
from ..host.host import Host
from ..typed_text import TextReader
from .player import Asker, Changes, Difference, Player
from .script import Script


class Replay(Value):
    """What a replay came to: `common` of `entries` are the same, `difference` is the first that is not.

    `session` is the id under which it was kept, empty if it was not. `asked` counts the calls of a model
    that were made, 0 unless one was to be asked; `is_free`: from some entry on it was not compared.
    `folder` is the copy of the folder in which it can go on, without `lost`, of which no copy was kept.
    """

    of: str
    entries: int
    common: int
    session: str = ""
    asked: int = 0
    is_free: bool = False
    folder: str = ""
    lost: tuple[str, ...] = ()
    difference: Difference | None = None

    @property
    def is_same(self) -> bool:
        """Whether everything was decided as recorded."""
        return self.difference is None and not self.is_free


class ReplayOptions(Value):
    """What is to be other than in the record, from turn `since` on; all empty: nothing.

    `model`, `agent` and `routes` are names of the configuration, `answers` pairs of a question and
    a choice. `is_yes`: what is asked about is allowed, as with `--yes`.
    """

    since: str = ""
    model: str = ""
    agent: str = ""
    routes: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    said: str = ""
    is_yes: bool = False
    is_live: bool = False


class _RecordedTool:
    """A tool that is not here, as far as the record shows what it is."""

    def __init__(self, name: str, is_mutating: bool, is_idempotent: bool) -> None:
        self.schema = ToolSchema(name=name, description="", parameters={"type": "object"})
        self.is_mutating, self.is_idempotent = is_mutating, is_idempotent

    def fault(self, arguments: dict[str, Any]) -> str:
        """Find nothing wrong with a call."""
        return ""


class Replayer:
    """Makes the surroundings of replays from the configuration of a host, which runs none of them."""

    def __init__(self, host: Host, other: Host | None = None) -> None:
        """`other` has the configuration of another agent that is to decide, if that is another one."""
        self._host, self._other = host, other or host
        self.asked = 0

    def play(self, stored: Iterable[StoredEntry], options: ReplayOptions) -> tuple[Replay, Player]:
        """Replay a session. Raises `UsageError` if it cannot be, or a change is none."""
        script = Script(stored)
        script.check()
        since, model = 1, self._host.opener.profiles.model(options.model) if options.model else None
        if options.since:
            since = script.start_of(options.since)
        elif options.said and model is None:
            since = len(script.entries) + 1
            model = self._host.opener.profiles.of_record(script.record()).model
        changes = Changes(
            since=since,
            answers={script.question(name): choice for name, choice in options.answers},
            said=options.said,
            amend=self._amending(script, options),
        )
        recorded = self._recorded(script, options)
        player = Player(
            script,
            lambda player, record: self._environment(player, record, recorded),
            changes,
            script.opened,
            TextReader(self._host.config.auto_queue.keywords).classify,
            self._asker(model) if model is not None else None,
        )
        try:
            difference = player.play()
        finally:
            player.close()
        return Replay(
            of=script.opened.session,
            entries=len(script.entries),
            common=player.at,
            asked=self.asked,
            is_free=player.is_free,
            difference=difference,
        ), player

    # Surroundings ---------------------------------------------------------------------------------

    def _profile(
        self, script: Script, agent: str, options: ReplayOptions, host: Host
    ) -> AgentProfile:
        profile = host.opener.profiles.unasked(agent)
        permissions = profile.permissions
        if options.is_yes:
            permissions = Permissions(permissions.rules, True, permissions.holds)
        policy = replace(profile.policy, can_ask=_can_ask(script))
        return replace(profile, permissions=permissions, policy=policy)

    def _recorded(self, script: Script, options: ReplayOptions) -> AgentProfile:
        """Return the agent of the record; one that is not known here is what the default agent is."""
        try:
            return self._profile(script, script.opened.agent, options, self._host)
        except UsageError:
            return self._profile(script, self._host.config.default_agent, options, self._host)

    def _amending(
        self, script: Script, options: ReplayOptions
    ) -> Callable[[Environment], None] | None:
        """Return what exchanges the routing tables, the agent, or both. Raises `SteersmanError`."""
        routes = find_table(options.routes) if options.routes else None
        profile = None
        if options.agent:
            profile = self._profile(script, options.agent, options, self._other)
        if routes is None and profile is None:
            return None

        def amend(environment: Environment) -> None:
            if profile is not None:
                environment.max_steps, environment.policy = profile.max_steps, profile.policy
                environment.progress = profile.progress
                policy = environment.tool_policy
                assert isinstance(policy, SessionToolPolicy)
                environment.tool_policy = self._tools(
                    script, profile, profile.tools, policy.choices
                )
            if routes is not None:
                environment.dispositions = routes.dispositions
                environment.deliveries = routes.deliveries

        return amend

    def _environment(
        self, player: Player, record: SessionRecord, profile: AgentProfile
    ) -> Environment:
        chosen = record.routes
        if chosen is not None:
            profile = replace(profile, routes=self._host.opener.profiles.routes(chosen))
        names = player.script.opened.tools or profile.tools
        choices = SessionChoices(lambda: player.ledger.record, profile.policy.mode)
        return Environment(
            journal=player,
            perform=player.ports,
            observers=(),
            tool_policy=self._tools(player.script, profile, names, choices),
            policy=profile.policy,
            max_steps=profile.max_steps,
            dispositions=profile.routes.dispositions,
            deliveries=profile.routes.deliveries,
            delegation=profile.delegation,
            compaction=replace(profile.compaction, window=_window(player.script, profile)),
            progress=profile.progress,
            account=account_of(record, profile.limits),
            price=profile.price,
            goals=profile.goals,
            agent=player.script.opened.agent,
            helpers=profile.helpers,
            result_limits=profile.result_limits,
            outputs=str(self._host.runtime.shared.storage.outputs / record.id),
        )

    def _tools(
        self,
        script: Script,
        profile: AgentProfile,
        names: tuple[str, ...],
        choices: SessionChoices,
    ) -> SessionToolPolicy:
        shared = self._host.runtime.shared
        toolbox: Toolbox = shared.toolbox.including(*profile.own_tools)
        made = [
            _RecordedTool(name, *script.tools.get(name, (True, False)))
            for name in names
            if name not in toolbox.names
        ]
        return SessionToolPolicy(
            toolbox=toolbox.including(*made),  # type: ignore[arg-type]
            names=names,
            permissions=profile.permissions,
            folder=Path(script.opened.folder),
            outputs=shared.storage.outputs / script.opened.session,
            claim=lambda path: "",
            choices=choices,
            skills=shared.skills,
        )

    def _asker(self, model: Model) -> Asker:
        """Return what asks a model."""

        async def asked(call: m.CallModel, record: SessionRecord) -> Any:
            names = tuple(tool for tool in record.tools if tool in toolbox.names)
            request = ModelRequest(
                system=record.system,
                messages=call.messages,
                tools=toolbox.schemas(names),
                unusable=call.unusable,
                call_prefix=f"{call.turn}.s{call.step}.c",
                max_tokens=call.max_tokens,
                is_plain=call.is_summary,
            )
            at: dict[str, Any] = {"turn": call.turn, "epoch": call.epoch, "step": call.step}
            try:
                answer = await model.answer(request, AnswerListener())
            except ModelError as error:
                return m.ModelFailed(**at, reason=error.message, hint=error.hint)
            if call.is_summary:
                return m.Summarised(**at, text=answer.text, usage=answer.usage)
            return m.ModelAnswered(
                **at,
                text=answer.text,
                tool_calls=answer.tool_calls,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                thoughts=answer.thoughts,
            )

        toolbox = self._host.runtime.shared.toolbox

        def ask(call: m.CallModel, record: SessionRecord) -> Any:
            self.asked += 1
            return self._host.runtime.run(asked(call, record), timeout=None)

        return ask


def _can_ask(script: Script) -> bool:
    """Whether a person could be asked: not where a call was refused since none could."""
    return not any(
        isinstance(recorded.entry, e.ToolRefused) and recorded.entry.is_unanswered
        for recorded in script.entries
    )


def _window(script: Script, profile: AgentProfile) -> int:
    """Return the model's window, which its server may have told."""
    told = (
        recorded.entry.window
        for recorded in script.entries
        if isinstance(recorded.entry, e.CompactionBegun) and recorded.entry.window
    )
    return next(told, profile.compaction.window)
