"""Replays a session of a home, or a file of one, and says where it parts from its record."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Environment
from ...actors.session_maker import account_of
from ...actors.tool_policy import SessionChoices, SessionToolPolicy
from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.memory import MemoryStore
from ...journal.record import SessionRecord
from ...journal.recovery import recovered
from ...journal.store import SessionRow, Store, StoredEntry
from ...machines import protocol as m
from ...machines.conversation import ToolSchema
from ...machines.errors import ModelError, UsageError
from ...machines.value import Value
from ...ports.models.model import AnswerListener, Model, ModelRequest
from ...ports.tools.permission import Permissions
from ...ports.tools.text import counted
from ...ports.tools.toolbox import Toolbox
from ...workflows.config import load
from ...workflows.paths import Paths
from ...workflows.routing import find_table
from ..host.host import Host
from ..host.offline_writer import writing
from ..launch_options import LaunchOptions
from ..typed_text import TextReader
from ..views.comparison import step_text
from ..wording.redaction import Redactor
from .player import Asker, Changes, Difference, Player
from .script import Script


class Replay(Value):
    """What a replay came to: `common` of `entries` are the same, `difference` is the first that is not.

    `session` is the id under which it was kept, empty if it was not. `asked` counts the calls of a model
    that were made, 0 unless one was to be asked; `is_free`: from some entry on it was not compared.
    """

    of: str
    entries: int
    common: int
    session: str = ""
    asked: int = 0
    is_free: bool = False
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

    def __init__(self, host: Host) -> None:
        self._host = host
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

    def _profile(self, script: Script, agent: str, options: ReplayOptions) -> AgentProfile:
        profile = self._host.opener.profiles.unasked(agent)
        permissions = profile.permissions
        if options.is_yes:
            permissions = Permissions(permissions.rules, True, permissions.holds)
        policy = replace(profile.policy, can_ask=_can_ask(script))
        return replace(profile, permissions=permissions, policy=policy)

    def _recorded(self, script: Script, options: ReplayOptions) -> AgentProfile:
        """Return the agent of the record; one that is not known here is what the default agent is."""
        try:
            return self._profile(script, script.opened.agent, options)
        except UsageError:
            return self._profile(script, self._host.config.default_agent, options)

    def _amending(
        self, script: Script, options: ReplayOptions
    ) -> Callable[[Environment], None] | None:
        """Return what exchanges the routing tables, the agent, or both. Raises `SteersmanError`."""
        routes = find_table(options.routes) if options.routes else None
        profile = self._profile(script, options.agent, options) if options.agent else None
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


def replayed_in(
    store: Store,
    row: SessionRow,
    paths: Paths,
    environ: Mapping[str, str],
    options: ReplayOptions,
) -> Replay:
    """Replay a session of a home, and keep what came as another one. Raises `SteersmanError`.

    The surroundings are made of the configuration for its folder.
    """
    config = load(paths, Path(row.folder), environ)
    with closing(Host(paths, config, environ, LaunchOptions(), MemoryStore())) as host:
        found, player = Replayer(host).play(store.entries(row.session, 0, row.seq), options)
    name = f"replay of {row.name or row.session}"
    return replace(found, session=keep(store, player, name, row.place))


# What is kept -------------------------------------------------------------------------------------


def keep(store: Store, player: Player, name: str, place: str) -> str:
    """Write what came of a replay as a session of the home, which is suspended; return its id.

    Its times are moved so that the last entry was written now.
    """
    session, kept = secrets.token_hex(4), player.kept
    moved = time.time() - kept[-1].time
    opened = player.script.opened
    row = SessionRow(
        session=session,
        folder=opened.folder,
        agent=opened.agent,
        created=kept[0].time + moved,
        place=place,
    )
    store.create(row)
    entries = [(replace(one, time=one.time + moved), decode_entry(one.data)) for one in kept]
    first = replace(player.script.opened, session=session)
    entries[0] = replace(entries[0][0], data=encode_entry(first)), first
    with writing(store, session) as writer:
        writer.keep_all(entries)
        now = time.time()
        if writer.record.state == "finalized":
            return session
        if writer.record.state not in ("idle", "suspended"):
            writer.write(now, recovered(writer.record))
        writer.write(now, e.SessionRenamed(name=name))
        if writer.record.state != "suspended":
            writer.write(now, e.SessionLeaving(cause="replay"), e.SessionSuspended(cause="replay"))
    return session


# For people and programs --------------------------------------------------------------------------


def replay_text(found: Replay, redactor: Redactor) -> str:
    """Write what a replay came to for people."""
    kept = f", kept as {found.session}" if found.session else ""
    asked = (
        f", {counted(found.asked, 'call')} of a model" if found.asked else ", nothing was called"
    )
    if found.is_same:
        return f"{found.of}: all {found.entries} entries decided as recorded{asked}{kept}."
    head = f"{found.of}: the same for {found.common} of {found.entries} entries{asked}{kept}."
    if found.difference is None:
        return head
    difference = found.difference
    lines = [head, f"The first difference is at entry {difference.seq}, in {_turn(difference)}:"]
    for side, entry in (("recorded", difference.recorded), ("replayed", difference.came)):
        text = step_text(entry, redactor) if entry is not None else "nothing more"
        lines.append(f"  {side}  {text}")
    return "\n".join((*lines, *([f"  {difference.why}"] if difference.why else [])))


def _turn(difference: Difference) -> str:
    return difference.turn or "no turn"


def replay_data(found: Replay, redactor: Redactor) -> dict[str, Any]:
    """Write what a replay came to as data."""
    difference = found.difference
    data: dict[str, Any] = {
        "of": found.of,
        "session": found.session or None,
        "entries": found.entries,
        "common": found.common,
        "asked": found.asked,
        "is_same": found.is_same,
        "difference": None,
    }
    if difference is not None:
        data["difference"] = {
            "seq": difference.seq,
            "turn": difference.turn or None,
            "recorded": encode_entry(difference.recorded) if difference.recorded else None,
            "replayed": encode_entry(difference.came) if difference.came else None,
            "why": difference.why,
        }
    redacted: dict[str, Any] = redactor.data(data)
    return redacted
