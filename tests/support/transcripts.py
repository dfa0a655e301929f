"""Recorded transcripts of other agents, laid where each agent keeps its own.

Each is of a real agent (claude 2.1.197, codex 0.171.0, opencode 1.18.33, pi 1.6.0) that talked to a
scripted model: two messages, a call, a call that failed or was refused, and a turn that was interrupted.
System prompts and figures are cut, and the folder is `FOLDER`.
"""

import sqlite3
from pathlib import Path

__all__ = ["AGENTS", "lay"]

_RECORDED = Path(__file__).parents[1] / "cli" / "transcripts"
AGENTS = {
    "claude": ("4b433f2c-fead-4e7d-9734-4b0ce535ff56", ".claude/projects/-folder/{id}.jsonl"),
    "codex": (
        "01a21dfa-876f-7102-9b62-ab33534f497d",
        ".codex/sessions/2026/11/27/rollout-2026-11-27T17-08-07-{id}.jsonl",
    ),
    "opencode": ("ses_de2053a45ffeD9pY3cUiAOAGOK", ".local/share/opencode/opencode.db"),
    "pi": (
        "01a21e02-9bac-7e3d-8437-abbe984d786e",
        ".pi/agent/sessions/--folder--/2026-11-27T17-16-57-132Z_{id}.jsonl",
    ),
}
"""For each agent the id of its transcript, and its place below the home folder."""


def lay(agent: str, home: Path, folder: Path) -> Path:
    """Write an agent's transcript below a home folder, of a session in `folder`; return its path."""
    name, place = AGENTS[agent]
    path = home / place.format(id=name)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "sql" if agent == "opencode" else "jsonl"
    recorded = (_RECORDED / f"{agent}.{kind}").read_text("utf-8").replace("FOLDER", str(folder))
    if agent != "opencode":
        path.write_text(recorded, "utf-8")
        return path
    database = sqlite3.connect(path)
    with database:
        database.executescript(recorded)
    database.close()
    return path
