"""Restore records: a pure fold of what the hooks of external agents said.

`RestoreBook.hear` takes one sign after the other; each goes through the machine `RESTORE`, whose
effects are the only things that change a record. So the same signs always give the same records, an
event twice changes nothing, and whatever ends a session ends it in one place.

Whose sign it is, is decided by the session's id and by the process that spoke. An agent that was
started inside another one's session, and by mistake or inheritance speaks in its name, is known by
its process: the outer one's process is still among its parents. Where it is not, since the inner one
left its parents behind, the environment that it inherited tells. It changes nothing of the outer one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ..machines.lifecycles import RESTORE
from ..machines.machine import Step, step
from ..machines.value import Value
from ..workflows.agent_definition import AgentDefinition

_KEPT_BY_US = ("heard", "outlive", "settle")
KEPT = ("working", "waiting", "stale")
"""States in which a session can be resumed."""
_SHELLS = frozenset(("bash", "dash", "env", "fish", "nice", "setsid", "sh", "timeout", "zsh"))


class AgentProcess(Value):
    """A process of an agent: its id, its start in ticks since boot (0: unknown), its names."""

    pid: int
    start: int = 0
    names: tuple[str, ...] = ()

    @property
    def is_shell(self) -> bool:
        """Whether it only starts others; a shell that runs a script is a program."""
        return len(self.names) == 1 and self.names[0].lstrip("-") in _SHELLS

    def is_same(self, other: "AgentProcess | None") -> bool:
        """Whether this is the very same process; ids alone are used again."""
        return other is not None and (self.pid, self.start) == (other.pid, other.start)


class HookSignal(Value):
    """One thing that was said of a session; `chain` are the speaker's parents, nearest first.

    `inherited` are variables of its environment in which agents name their sessions.
    """

    time: float
    event: str
    agent: str
    session: str = ""
    cwd: str = ""
    transcript: str = ""
    why: str = ""
    told: AgentProcess | None = None
    chain: tuple[AgentProcess, ...] = ()
    terminal: str = ""
    pane: str = ""
    inherited: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "HookSignal":
        """Build a sign from a line of the spool. Raises KeyError, TypeError, ValueError."""
        told = data.get("told")
        return cls(
            time=float(data["time"]),
            event=str(data["event"]).replace("-", "_"),
            agent=str(data["agent"]),
            **{
                name: str(data.get(name) or "")
                for name in ("session", "cwd", "transcript", "why", "terminal", "pane")
            },
            told=_process(told) if told else None,
            chain=tuple(_process(process) for process in data.get("chain") or ()),
            inherited=tuple((str(k), str(v)) for k, v in dict(data.get("env") or {}).items()),
        )


class RestoreRecord(Struct, kw_only=True):
    """What is known of one session. Times are seconds since the epoch.

    `finalize` is a stable id for whoever hears of its end; `inside` the id of the session in which
    its agent was started; `previous` the ids that it had before it was resumed under this one;
    `heard` the newest sign that hooks were told of. `is_sure`: the process is surely the agent's.
    """

    agent: str
    session: str
    state: str = "unknown"
    cwd: str = ""
    transcript: str = ""
    terminal: str = ""
    pane: str = ""
    process: AgentProcess | None = None
    opened: float = 0.0
    updated: float = 0.0
    last_boundary: float = 0.0
    generation: int = 0
    finalize: str = ""
    cause: str = ""
    inside: str = ""
    previous: tuple[str, ...] = ()
    heard: float = 0.0
    is_resuming: bool = False
    is_sure: bool = False
    was_known: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether it can be resumed."""
        return self.state in KEPT


class RestoreBook:
    """All records of a home, by agent and id; `ended` are those torn down, oldest first."""

    def __init__(self, agents: Mapping[str, AgentDefinition]) -> None:
        self.records: dict[tuple[str, str], RestoreRecord] = {}
        self.ended: list[RestoreRecord] = []
        self._agents = agents
        self._programs = frozenset(name for agent in agents.values() for name in agent.programs)

    def kept(self) -> list[RestoreRecord]:
        """List what can be resumed, newest sign first."""
        found = [record for record in self.records.values() if record.is_kept]
        return sorted(found, key=lambda record: -record.updated)

    def hear(self, sign: HookSignal) -> RestoreRecord | None:
        """Fold one sign; returns the record that it changed, if any."""
        agent = self._agents.get(sign.agent)
        if agent is None:
            return None
        if sign.event in _KEPT_BY_US:
            return self._note(sign)
        owner = self._owner(sign, agent)
        is_sure = sign.told is not None or bool(owner and agent.programs & set(owner.names))
        if not is_sure and owner and self._programs & set(owner.names):
            return (
                None  # another agent speaks through this one's hooks, which some read as their own
            )
        record = self._record(sign, owner, is_sure)
        if record is None or (_is_nested(record, owner, sign) and (is_sure or record.is_sure)):
            return None
        if not is_sure and record.is_sure and self._is_left_behind(record, agent, sign, owner):
            return None
        if not self._move(record, agent, sign, owner):
            return None
        if record.process is owner:
            record.is_sure = is_sure
        return record

    def _note(self, sign: HookSignal) -> RestoreRecord | None:
        """Take what this program itself wrote down: a finalize was heard of, a record is old."""
        records = self.ended if sign.event == "settle" else list(self.records.values())
        for record in records:
            named = record.finalize if sign.event == "settle" else record.session
            if record.agent == sign.agent and named == (sign.why or sign.session):
                if sign.event == "heard":
                    record.heard = max(record.heard, sign.time)
                else:
                    moved = step(RESTORE, record.state, sign.event)
                    record.state = moved.state
                return record
        return None

    # Whose sign it is -----------------------------------------------------------------------------

    def _owner(self, sign: HookSignal, agent: AgentDefinition) -> AgentProcess | None:
        """Find the agent's process: told, or by its name, or the first that is no shell.

        Only the two nearest can be meant: what is farther up is what the agent itself runs in.
        """
        if sign.told is not None:
            return sign.told
        near = [process for process in sign.chain if not process.is_shell]
        for process in near[:2]:
            if agent.programs & set(process.names):
                return process
            if self._programs & set(process.names):
                break
        return next(iter(near or sign.chain), None)

    def _record(
        self, sign: HookSignal, owner: AgentProcess | None, is_sure: bool
    ) -> RestoreRecord | None:
        """Find the record that a sign is about, or begin one; none for a sign of nobody.

        Without an id only a process that is surely the agent's own can tell.
        """
        if sign.session:
            return self._named(sign, owner)
        if not is_sure:
            return None
        mine = [
            record
            for record in self.records.values()
            if record.agent == sign.agent
            and record.is_kept
            and owner
            and owner.is_same(record.process)
        ]
        if mine:
            return max(mine, key=lambda record: record.updated)
        if sign.event != "session_start" or owner is None:
            return None
        name = f"@{owner.pid}-{owner.start}"
        return self.records.setdefault(
            (sign.agent, name), RestoreRecord(agent=sign.agent, session=name)
        )

    def _named(self, sign: HookSignal, owner: AgentProcess | None) -> RestoreRecord | None:
        key = (sign.agent, sign.session)
        known = self.records.get(key)
        is_over = known is not None and not known.is_kept
        if known is not None and not is_over:
            return known
        record = RestoreRecord(agent=sign.agent, session=sign.session)
        if known is not None:
            record.generation, record.was_known = known.generation, True
        if sign.event == "session_start":
            self._continue(record, sign)
        elif known is None:
            return None
        if sign.event in ("session_start", "prompt_submit"):
            record.inside = self._outer(sign, owner)
            return record
        return known

    def _continue(self, record: RestoreRecord, sign: HookSignal) -> None:
        """A session that was resumed may come back under another id: it is the same record."""
        for old in self.records.values():
            is_run = old.is_resuming and old.process is not None and old.agent == sign.agent
            near = [process for process in (sign.told, *sign.chain) if process is not None]
            if is_run and any(process.is_same(old.process) for process in near):
                moved = step(RESTORE, old.state, "continue")
                if isinstance(moved, Step):
                    old.state, old.is_resuming = moved.state, False
                    old.cause = f"resumed as {sign.session}"
                    record.previous = (*old.previous, old.session)
                    record.last_boundary = old.last_boundary

    def _outer(self, sign: HookSignal, owner: AgentProcess | None) -> str:
        """Name the session whose process is above the speaker's own, or whose name it inherited."""
        for process in sign.chain:
            for other in self.records.values():
                is_own = owner is not None and owner.is_same(other.process)
                if other.is_kept and not is_own and process.is_same(other.process):
                    return other.session
        for agent in self._agents.values():
            name = _inherited(agent, sign)
            known = self.records.get((agent.name, name))
            if known is None or not known.is_kept:
                continue
            is_same = owner is not None and owner.is_same(known.process)
            if not is_same and (agent.name, name) != (sign.agent, sign.session):
                return name
        return ""

    def _is_left_behind(
        self,
        record: RestoreRecord,
        agent: AgentDefinition,
        sign: HookSignal,
        owner: AgentProcess | None,
    ) -> bool:
        """Whether a program that is no agent says what it inherited, its parents being gone.

        An agent's own hooks may have the variable as well, but then the process is the agent's.
        """
        is_other = owner is not None and not owner.is_same(record.process)
        return is_other and not record.is_resuming and _inherited(agent, sign) == record.session

    # What it does ---------------------------------------------------------------------------------

    def _move(
        self,
        record: RestoreRecord,
        agent: AgentDefinition,
        sign: HookSignal,
        owner: AgentProcess | None,
    ) -> bool:
        facts = {
            name
            for name, holds in (
                ("is_turn_boundary", agent.session_end_is_turn_boundary),
                ("prompt_reopens", agent.prompt_reopens),
                ("was_known", record.was_known),
            )
            if holds
        }
        moved = step(RESTORE, record.state, sign.event, facts)
        if not isinstance(moved, Step) or moved.ignored:
            return False
        record.state, record.updated = moved.state, max(record.updated, sign.time)
        for effect in moved.effects:
            _EFFECTS[effect](record, sign, owner)
        self.records[record.agent, record.session] = record
        if record.finalize:
            self.ended.append(record)
        return True


def _inherited(agent: AgentDefinition, sign: HookSignal) -> str:
    """Return the id of the agent's session in which the speaker was started, if it says so."""
    return next((value for name, value in sign.inherited if name == agent.session_env), "")


def _is_nested(record: RestoreRecord, owner: AgentProcess | None, sign: HookSignal) -> bool:
    """Whether the speaker runs below the process that the record belongs to, and is another."""
    process = record.process
    if process is None or owner is None or owner.is_same(process) or record.is_resuming:
        return False
    place = [index for index, one in enumerate(sign.chain) if one.is_same(process)]
    own = [index for index, one in enumerate(sign.chain) if one.is_same(owner)]
    return bool(place and own) and own[0] < place[0]


def _open(record: RestoreRecord, sign: HookSignal, owner: AgentProcess | None) -> None:
    record.generation += 1
    record.opened = record.updated = sign.time
    record.was_known = False


def _bind(record: RestoreRecord, sign: HookSignal, owner: AgentProcess | None) -> None:
    """Keep what is known of where it runs: the newest word counts, silence changes nothing."""
    record.cwd = record.cwd or sign.cwd
    record.transcript = sign.transcript or record.transcript
    record.terminal = sign.terminal or record.terminal
    record.pane = sign.pane or record.pane
    record.process = owner or record.process
    record.is_resuming = sign.event == "resume"


def _note_boundary(record: RestoreRecord, sign: HookSignal, owner: AgentProcess | None) -> None:
    record.last_boundary = max(record.last_boundary, sign.time)


def _tear_down(record: RestoreRecord, sign: HookSignal, owner: AgentProcess | None) -> None:
    """End a record: the one way, whichever event asked for it."""
    record.finalize = f"finalize-{record.agent}-{record.session}-{record.generation}"
    record.cause = sign.why or sign.event.replace("_", "-")
    record.process = None


_EFFECTS: Mapping[str, Callable[[RestoreRecord, HookSignal, AgentProcess | None], None]] = {
    "open": _open,
    "bind": _bind,
    "note_boundary": _note_boundary,
    "tear_down": _tear_down,
}


def _process(data: Any) -> AgentProcess:
    pid, start, names = data
    return AgentProcess(pid=int(pid), start=int(start), names=tuple(str(names).split()))
