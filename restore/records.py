"""Restore records: a pure fold of the signals that the hooks of external agents sent.

`RestoreBook.apply` takes one signal after the other; each goes through the machine `RESTORE`, whose
effects are the only things that change a record. So the same signals always give the same records, an
event twice changes nothing, and whatever ends a session ends it in one place.

The session's id and the process that sent a signal decide whose it is. An agent that was started
inside another one's session, and by mistake or inheritance speaks in its name, is known by its
process: the outer one's process is still among its parents. Where it is not, since the inner one left
its parents behind, the environment that it inherited decides. It changes nothing of the outer one.
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
    """One event that a hook reported of a session; `chain` are the sender's parents, nearest first.

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
        """Build a signal from a line of the hook log. Raises KeyError, TypeError, ValueError."""
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
    """The record of one session. Times are seconds since the epoch.

    `finalize` is a stable id for the hooks that run at its end; `inside` the id of the session in which
    its agent was started; `previous` the ids that it had before it was resumed under this one;
    `heard` the newest signal that hooks ran for. `is_sure`: the process is surely the agent's.
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
        """List what can be resumed, newest signal first."""
        found = [record for record in self.records.values() if record.is_kept]
        return sorted(found, key=lambda record: -record.updated)

    def apply(self, signal: HookSignal) -> RestoreRecord | None:
        """Fold one signal; returns the record that it changed, if any."""
        agent = self._agents.get(signal.agent)
        if agent is None:
            return None
        if signal.event in _KEPT_BY_US:
            return self._note(signal)
        owner = self._owner(signal, agent)
        is_sure = signal.told is not None or bool(owner and agent.programs & set(owner.names))
        if not is_sure and owner and self._programs & set(owner.names):
            return (
                None  # another agent speaks through this one's hooks, which some read as their own
            )
        record = self._record(signal, owner, is_sure)
        if record is None or (_is_nested(record, owner, signal) and (is_sure or record.is_sure)):
            return None
        if not is_sure and record.is_sure and self._is_left_behind(record, agent, signal, owner):
            return None
        if not self._move(record, agent, signal, owner):
            return None
        if record.process is owner:
            record.is_sure = is_sure
        return record

    def _note(self, signal: HookSignal) -> RestoreRecord | None:
        """Apply what this program itself wrote: hooks ran for a finalize, a record is old."""
        records = self.ended if signal.event == "settle" else list(self.records.values())
        for record in records:
            named = record.finalize if signal.event == "settle" else record.session
            if record.agent == signal.agent and named == (signal.why or signal.session):
                if signal.event == "heard":
                    record.heard = max(record.heard, signal.time)
                else:
                    moved = step(RESTORE, record.state, signal.event)
                    record.state = moved.state
                return record
        return None

    # The session of a signal ----------------------------------------------------------------------

    def _owner(self, signal: HookSignal, agent: AgentDefinition) -> AgentProcess | None:
        """Find the agent's process: as reported, or by its name, or the first that is no shell.

        Only the two nearest can be meant: what is farther up is what the agent itself runs in.
        """
        if signal.told is not None:
            return signal.told
        near = [process for process in signal.chain if not process.is_shell]
        for process in near[:2]:
            if agent.programs & set(process.names):
                return process
            if self._programs & set(process.names):
                break
        return next(iter(near or signal.chain), None)

    def _record(
        self, signal: HookSignal, owner: AgentProcess | None, is_sure: bool
    ) -> RestoreRecord | None:
        """Find the record that a signal is about, or begin one; none for a signal of no session.

        Without an id only a process that is surely the agent's own can tell.
        """
        if signal.session:
            return self._named(signal, owner)
        if not is_sure:
            return None
        mine = [
            record
            for record in self.records.values()
            if record.agent == signal.agent
            and record.is_kept
            and owner
            and owner.is_same(record.process)
        ]
        if mine:
            return max(mine, key=lambda record: record.updated)
        if signal.event != "session_start" or owner is None:
            return None
        name = f"@{owner.pid}-{owner.start}"
        return self.records.setdefault(
            (signal.agent, name), RestoreRecord(agent=signal.agent, session=name)
        )

    def _named(self, signal: HookSignal, owner: AgentProcess | None) -> RestoreRecord | None:
        key = (signal.agent, signal.session)
        known = self.records.get(key)
        is_over = known is not None and not known.is_kept
        if known is not None and not is_over:
            return known
        record = RestoreRecord(agent=signal.agent, session=signal.session)
        if known is not None:
            record.generation, record.was_known = known.generation, True
        if signal.event == "session_start":
            self._continue(record, signal)
        elif known is None:
            return None
        if signal.event in ("session_start", "prompt_submit"):
            record.inside = self._outer(signal, owner)
            return record
        return known

    def _continue(self, record: RestoreRecord, signal: HookSignal) -> None:
        """A session that was resumed may come back under another id: it is the same record."""
        for old in self.records.values():
            is_run = old.is_resuming and old.process is not None and old.agent == signal.agent
            near = [process for process in (signal.told, *signal.chain) if process is not None]
            if is_run and any(process.is_same(old.process) for process in near):
                moved = step(RESTORE, old.state, "continue")
                if isinstance(moved, Step):
                    old.state, old.is_resuming = moved.state, False
                    old.cause = f"resumed as {signal.session}"
                    record.previous = (*old.previous, old.session)
                    record.last_boundary = old.last_boundary

    def _outer(self, signal: HookSignal, owner: AgentProcess | None) -> str:
        """Name the session whose process is above the sender's own, or whose name it inherited."""
        for process in signal.chain:
            for other in self.records.values():
                is_own = owner is not None and owner.is_same(other.process)
                if other.is_kept and not is_own and process.is_same(other.process):
                    return other.session
        for agent in self._agents.values():
            name = _inherited(agent, signal)
            known = self.records.get((agent.name, name))
            if known is None or not known.is_kept:
                continue
            is_same = owner is not None and owner.is_same(known.process)
            if not is_same and (agent.name, name) != (signal.agent, signal.session):
                return name
        return ""

    def _is_left_behind(
        self,
        record: RestoreRecord,
        agent: AgentDefinition,
        signal: HookSignal,
        owner: AgentProcess | None,
    ) -> bool:
        """Whether a program that is no agent reports what it inherited, its parents being gone.

        An agent's own hooks may have the variable as well, but then the process is the agent's.
        """
        is_other = owner is not None and not owner.is_same(record.process)
        return is_other and not record.is_resuming and _inherited(agent, signal) == record.session

    # Its effect on the record ---------------------------------------------------------------------

    def _move(
        self,
        record: RestoreRecord,
        agent: AgentDefinition,
        signal: HookSignal,
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
        moved = step(RESTORE, record.state, signal.event, facts)
        if not isinstance(moved, Step) or moved.ignored:
            return False
        record.state, record.updated = moved.state, max(record.updated, signal.time)
        for effect in moved.effects:
            _EFFECTS[effect](record, signal, owner)
        self.records[record.agent, record.session] = record
        if record.finalize:
            self.ended.append(record)
        return True


def _inherited(agent: AgentDefinition, signal: HookSignal) -> str:
    """Return the id of the agent's session in which the sender was started, if it says so."""
    return next((value for name, value in signal.inherited if name == agent.session_env), "")


def _is_nested(record: RestoreRecord, owner: AgentProcess | None, signal: HookSignal) -> bool:
    """Whether the sender runs below the process that the record belongs to, and is another."""
    process = record.process
    if process is None or owner is None or owner.is_same(process) or record.is_resuming:
        return False
    place = [index for index, parent in enumerate(signal.chain) if parent.is_same(process)]
    own = [index for index, parent in enumerate(signal.chain) if parent.is_same(owner)]
    return bool(place and own) and own[0] < place[0]


def _open(record: RestoreRecord, signal: HookSignal, owner: AgentProcess | None) -> None:
    record.generation += 1
    record.opened = record.updated = signal.time
    record.was_known = False


def _bind(record: RestoreRecord, signal: HookSignal, owner: AgentProcess | None) -> None:
    """Keep what is known of where it runs: the newest value counts, an empty one changes nothing."""
    record.cwd = record.cwd or signal.cwd
    record.transcript = signal.transcript or record.transcript
    record.terminal = signal.terminal or record.terminal
    record.pane = signal.pane or record.pane
    record.process = owner or record.process
    record.is_resuming = signal.event == "resume"


def _note_boundary(record: RestoreRecord, signal: HookSignal, owner: AgentProcess | None) -> None:
    record.last_boundary = max(record.last_boundary, signal.time)


def _tear_down(record: RestoreRecord, signal: HookSignal, owner: AgentProcess | None) -> None:
    """End a record: the one way, whichever event asked for it."""
    record.finalize = f"finalize-{record.agent}-{record.session}-{record.generation}"
    record.cause = signal.why or signal.event.replace("_", "-")
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
