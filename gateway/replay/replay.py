"""Replays a session of a home, or a file of one, and says where it parts from its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Environment
from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.store import StoredEntry
from ...machines import protocol as m
from ...machines.errors import ModelError, UsageError
from ...machines.value import Value
from ...ports.models.model import AnswerListener, Model, ModelRequest
from ...ports.tools.permission import Permissions
from ...simulator.replay.player import Asker, Changes, Difference, Player
from ...simulator.replay.script import Script
from ...simulator.replay.surroundings import Surroundings
from ...workflows.routing import find_table
from ..host.host import Host
from ..typed_text import TextReader


class Replay(Value):
    """What a replay came to: `common` of `entries` are the same, `difference` is the first that is not.

    `session` is the id under which it was kept, empty if it was not. `asked` counts the calls of a model
    that were made, 0 unless one was to be asked; `is_free`: from some entry on it was not compared.
    `unsaid` counts the messages that the record still had where it ended. `folder` is the copy of the
    folder in which it can go on, without `lost`, of which no copy was kept.
    """

    of: str
    entries: int
    common: int
    session: str = ""
    asked: int = 0
    is_free: bool = False
    unsaid: int = 0
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


class Replayer:
    """Makes the surroundings of replays from the configuration of a host, which runs none of them."""

    def __init__(self, host: Host, other: Host | None = None) -> None:
        """`other` has the configuration of another agent that is to decide, if that is another one."""
        shared = host.runtime.shared
        self._host, self._other = host, other or host
        self._surroundings = Surroundings(
            toolbox=shared.toolbox, outputs=shared.storage.outputs, skills=shared.skills
        )
        self.asked = 0

    def play(self, stored: Iterable[StoredEntry], options: ReplayOptions) -> tuple[Replay, Player]:
        """Replay a session. Raises `UsageError` if it cannot be, or a change is none."""
        script = Script(stored)
        script.check()
        since = script.start_of(options.since) if options.since else 1
        asks_from, model = since, None
        if options.model:
            model = self._host.opener.profiles.model(options.model)
        elif options.said:
            asks_from = len(script.entries) + 1
            model = self._host.opener.profiles.of_record(script.record()).model
        changes = Changes(
            since=since,
            asks_from=asks_from,
            answers=dict(script.answer(*pair) for pair in options.answers),
            said=options.said,
            amend=self._amending(script, options),
        )
        recorded, profiles = self._recorded(script, options), self._host.opener.profiles

        def surrounded(player: Player, record: SessionRecord) -> Environment:
            chosen = record.routes
            routes = recorded.routes if chosen is None else profiles.routes(chosen)
            return self._surroundings.around(player, record, recorded, routes)

        player = Player(
            script,
            surrounded,
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
            unsaid=script.messages_after(player.at) if difference is not None else 0,
            difference=difference,
        ), player

    # Surroundings ---------------------------------------------------------------------------------

    def _profile(
        self, script: Script, agent: str, options: ReplayOptions, host: Host
    ) -> AgentProfile:
        profile = host.opener.profiles.unasked(agent)
        permissions = profile.permissions
        if options.is_yes and not script.was_asked:
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

        return lambda environment: self._surroundings.amend(environment, script, profile, routes)

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
