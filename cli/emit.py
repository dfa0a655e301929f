"""`steersman hooks emit`: called by the hooks of other agents; records the event and nothing else.

An agent waits for this at every event, so nothing of the program is imported: no parser, no journal,
no configuration. It always answers `{}` and exits 0, and stops reading its input after `INPUT_TIMEOUT`
seconds or `LIMIT` bytes. `restore/records.py` reads the lines and decides what they mean.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn  # importing it takes longer than all the rest


EVENTS = (
    "session-start",
    "prompt-submit",
    "agent-response",
    "session-end",
    "session-finalize",
    "notification",
)
SYNCED = ("session-start", "session-end", "session-finalize")
INHERITED = ("_SESSION_ID", "_THREAD_ID")
"""Suffixes of the variables that name an agent's session to the programs that it starts."""
DRIVEN = "STEERSMAN_DRIVES"
"""The variable that names the agent that a session of this program drives; that has no record."""
INPUT_TIMEOUT = 2.0
LIMIT = 16 * 1024 * 1024
_CHUNK = 1 << 16


def emit(arguments: list[str]) -> NoReturn:
    """Take one event from an agent, answer, and end the process: with 0, whatever happened."""
    is_recorded = False
    try:
        received = time.time()
        payload = _payload(_drain())
        if payload is not None and len(arguments) == 2 and arguments[1] in EVENTS:
            is_recorded = _append(arguments[0].strip().lower(), arguments[1], payload, received)
    finally:
        try:
            os.write(1, b"{}\n")
            if is_recorded and arguments[1] in (*SYNCED, "agent-response"):
                _wake_hooks()
        finally:
            os._exit(0)


def _wake_hooks() -> None:
    """Start a process that runs the user's hooks, if there are any; do not wait for it."""
    files = [os.path.join(_home_folder("config", "XDG_CONFIG_HOME", ".config"), "config.toml")]
    files += [os.environ.get("STEERSMAN_CONFIG", "")]
    if not any(b"[[hooks]]" in _content(file) for file in files if file):
        return
    from ..ports.process.own_python import module_command, search_path

    command = module_command("steersman", "hooks", "tell")
    environ = {**os.environ, **search_path(os.environ)}
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    os.posix_spawn(command[0], command, environ, file_actions=nowhere, setsid=True)


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(1 << 20)
    except OSError:
        return b""


def _append(agent: str, event: str, payload: dict[str, Any], received: float) -> bool:
    """Record the event; False if its session is not known."""
    from ..restore.hook_log import append, file_of

    agent = _name_of(agent)
    names: tuple[str, ...] = ("session_id", "sessionId", "sessionID")
    session = _text(payload, *names) or _text(_inner(payload, "session"), "id")
    if not session:
        session = _text(payload, *_other_names(agent)) if agent else ""
    is_odd = not session and any(payload.get(name) not in (None, "") for name in names)
    is_driven = agent == os.environ.get(DRIVEN)
    # An id that is no single argument of a command, or an option, is not the same as none.
    is_odd = is_odd or session.startswith("-") or not session.isprintable() or " " in session
    if not agent or is_driven or is_odd:
        return False
    is_start = event == "session-start"
    path = file_of(_state(), agent, session)
    if not session and not is_start and not os.path.isdir(os.path.dirname(path)):
        return False
    create = is_start or not session
    if not create and not os.path.exists(path):
        return False  # an unknown session
    line = _line(agent, event, session, payload, received)
    return append(path, line, create=create, sync=event in SYNCED)


def _line(agent: str, event: str, session: str, payload: dict[str, Any], received: float) -> bytes:
    from ..ports.process.ancestry import ancestors, process, terminal

    own = os.getpid()
    pid = payload.get("pid")
    has_pid = isinstance(pid, int) and not isinstance(pid, bool) and pid > 1
    folder = _text(payload, "cwd", "workspaceRoot", "workspace_root", limit=4096)
    data = {
        "time": received,
        "event": event,
        "agent": agent,
        "session": session,
        "cwd": folder or os.getcwd(),
        "transcript": _text(payload, "transcript_path", "transcriptPath", limit=4096),
        "why": _text(payload, "source", "reason", limit=100),
        "told": process(pid) if has_pid and pid is not None else None,
        "chain": ancestors(own),
        "terminal": terminal(own),
        "pane": os.environ.get("TMUX_PANE", "") or os.environ.get("STY", ""),
        "env": {
            name: value
            for name, value in os.environ.items()
            if name.endswith(INHERITED) and 0 < len(value) <= 256 and value.isprintable()
        },
    }
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _drain() -> bytes:
    """Read standard input to its end, within `LIMIT` and `INPUT_TIMEOUT`; the rest is discarded."""
    import select

    if os.isatty(0):
        return b""
    kept: list[bytes] = []
    size, end = 0, time.monotonic() + INPUT_TIMEOUT
    while size < 4 * LIMIT:
        left = end - time.monotonic()
        if left <= 0 or not select.select([0], [], [], left)[0]:
            break
        chunk = os.read(0, _CHUNK)
        if not chunk:
            break
        size += len(chunk)
        if size <= LIMIT:
            kept.append(chunk)
    return b"".join(kept)


def _payload(text: bytes) -> dict[str, Any] | None:
    """Parse the payload; `None` if it is not a JSON object."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _table(data) if isinstance(data, dict) else None


def _inner(payload: dict[str, Any], name: str) -> dict[str, Any]:
    inner = payload.get(name)
    return _table(inner) if isinstance(inner, dict) else {}


def _table(data: Any) -> dict[str, Any]:
    found: dict[str, Any] = data
    return found


def _text(payload: dict[str, Any], *names: str, limit: int = 256) -> str:
    """Return the first of these fields that is a number or a text of at most `limit` characters."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value and len(value) <= limit:
            return value
    return ""


def _name_of(agent: str) -> str:
    """Return an agent's name: that of its file; only for an alias the files are read."""
    if not agent.replace("-", "").replace("_", "").isalnum() or not agent.isascii():
        return ""
    folders = _folders()
    if any(os.path.exists(os.path.join(folder, f"{agent}.toml")) for folder in folders):
        return agent
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith(".toml") and agent in _declared(folder, name).get("aliases", ()):
                return name.removesuffix(".toml")
    return ""


def _other_names(agent: str) -> tuple[str, ...]:
    """Return the other names of the field in which an agent sends its session's id."""
    found: list[str] = []
    for folder in _folders():
        payload = _inner(_declared(folder, f"{agent}.toml"), "payload")
        names = payload.get("session_id", [])
        found += [name for name in names if isinstance(name, str)] if names else []
    return tuple(found)


def _declared(folder: str, name: str) -> dict[str, Any]:
    from ..workflows.foreign_file import parse_toml, read_text

    try:
        data = parse_toml(read_text(os.path.join(folder, name)))
    except (OSError, ValueError):
        return {}
    return _inner(data, "agent")


def _folders() -> tuple[str, str]:
    """Return the folders of agent definitions: the user's, then the shipped one."""
    shipped = os.path.join(os.path.dirname(os.path.dirname(__file__)), "workflows", "agents")
    return os.path.join(_home_folder("config", "XDG_CONFIG_HOME", ".config"), "agents"), shipped


def _state() -> str:
    return _home_folder("state", "XDG_STATE_HOME", ".local/state")


def _home_folder(kind: str, variable: str, below: str) -> str:
    """Find a folder as `Paths.of` does, without its imports. Raises `OSError` if there is no home."""
    from ..workflows.home_folder import home_of_account

    if home := os.environ.get("STEERSMAN_HOME"):
        home = os.path.abspath(os.path.expanduser(home))
        return home if kind == "config" else os.path.join(home, kind)
    base = os.environ.get(variable, "").strip()
    if sys.platform == "darwin":
        base, below = "", "Library/Application Support"
    if not os.path.isabs(base):
        if not (home := home_of_account()):
            raise FileNotFoundError(variable)
        base = os.path.join(home, below)
    return os.path.join(base, "steersman")
