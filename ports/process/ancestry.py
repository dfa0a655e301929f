"""Processes as the kernel knows them: when they started, their parents, their terminal.

Only `os` is imported, because a hook of an agent runs this at every event. A process is known by its id
and its start time, since ids are reused. Where there is no `/proc`, a process has no start time, and
only its direct parent is known.
"""

import os

Known = tuple[int, int, str]
"""A process: its id, its start in clock ticks since boot (0: not known), the names it may go by."""

_CHUNK = 65_536
_DEEPEST = 24
_INTERPRETERS = ("bash", "bun", "dash", "deno", "node", "python", "sh", "zsh")
_PTS = 136  # the major device number of pseudo terminals on Linux


def ancestors(pid: int) -> list[Known]:
    """List a process's parents, nearest first, without the first process of the system."""
    found: list[Known] = []
    stat = stat_of(pid)
    while stat and len(found) < _DEEPEST:
        parent = int(stat[1])
        if parent <= 1 or (stat := stat_of(parent)) is None:
            break
        found.append((parent, int(stat[19]), _names(parent)))
    if not found and stat is None:
        found.append((os.getppid(), 0, ""))
    return found


def process(pid: int) -> Known | None:
    """Return the facts about a process; none if there is none."""
    stat = stat_of(pid)
    if stat is not None:
        return (pid, int(stat[19]), _names(pid))
    return (pid, 0, "") if _exists(pid) else None


def is_alive(pid: int, start: int = 0) -> bool:
    """Whether exactly this process still runs; a zombie does not. With 0, any start counts."""
    stat = stat_of(pid)
    if stat is None:
        return start == 0 and _exists(pid)
    return start in (0, int(stat[19])) and stat[0] not in ("Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal (Ctrl-Z, SIGSTOP), as far as that can be known."""
    stat = stat_of(pid)
    return stat is not None and stat[0] in ("T", "t")


def started(pid: int) -> int:
    """Return when a running process started, in clock ticks since boot; 0 if it does not run."""
    stat = stat_of(pid)
    return int(stat[19]) if stat is not None and stat[0] not in ("Z", "X") else 0


def arguments(pid: int) -> list[str]:
    """Return the argument list of a process, without empty words; empty if it cannot be read."""
    return [word for word in read(f"/proc/{pid}/cmdline").split("\0") if word]


def terminal(pid: int) -> str:
    """Return the path of a process's terminal, or nothing."""
    stat = stat_of(pid)
    if stat is None:
        return ""
    number = int(stat[4])
    major, minor = (number >> 8) & 0xFFF, (number & 0xFF) | ((number >> 12) & 0xFFF00)
    if major == _PTS:
        return f"/dev/pts/{minor}"
    return f"/dev/tty{minor}" if major == 4 else ""


def stat_of(pid: int) -> list[str] | None:
    """Read the fields behind the name: state, parent, group, session, terminal, … start."""
    # The name in parentheses may hold anything, also parentheses.
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 19 else None


def _names(pid: int) -> str:
    """Return the name of a process's program; of an interpreter also that of the script."""
    words = arguments(pid)[:6]
    names = [word.rpartition("/")[2] for word in words[:1]]
    if names and names[0].lstrip("-").rstrip("0123456789.") in _INTERPRETERS:
        options = [word for word in words[1:] if word[0] == "-"]
        scripts = [word.rpartition("/")[2] for word in words[1:] if word[0] != "-"]
        if not any("c" in word[1:] for word in options if word[1:2] != "-"):  # text is no script
            names += scripts[:1]
    return " ".join(name for name in names if name.isprintable() and " " not in name)[:200]


def read(path: str) -> str:
    """Read a file of /proc; empty if what it is about has ended."""
    data = b""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        while piece := os.read(file, _CHUNK):
            data += piece
    except OSError:
        return ""
    finally:
        os.close(file)
    return data.decode(errors="replace")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return not os.path.isdir("/proc/self")
