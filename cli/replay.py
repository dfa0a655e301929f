"""`steersman routes replay`: a session's journal, asked what another table would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..gateway.home import named_session
from ..gateway.replay import Deviation, Replay, moments, replay
from ..gateway.terminal import clean
from ..machines.explanation import SITUATIONS
from ..machines.policy import Policy
from ..machines.words import Words
from ..workflows.config import Config, load
from ..workflows.paths import Paths
from ..workflows.routing import find_table, routes_for
from .page import show, show_document
from .stored import stored


def replay_session(environ: Mapping[str, str], session: str, under: str, *, as_json: bool) -> int:
    """Print what would have been different under another table. Nothing is changed."""
    theirs = find_table(under)
    with stored(environ) as store:
        row = named_session(store, session)
        config = load(Paths.of(environ), Path(row.folder), environ)
        queue = config.auto_queue
        words = Words(queue.interrupt_keywords, queue.steer_keywords, queue.filler_words)
        history = moments(store.entries(row.session), _policy(config, row.agent))
        done = replay(history, lambda choice: routes_for(config, choice)[0], theirs, words)
    if as_json:
        rows = [_view(one) for one in done.deviations]
        counted = {"session": row.session, "under": theirs.name, "looked_at": done.looked_at}
        show_document({**counted, "deviations": rows})
    else:
        show(clean("\n".join(_lines(done, theirs.name))))
    return 0


def _policy(config: Config, agent: str) -> Policy:
    settings = config.agent(agent if agent in config.agents else config.default_agent)
    chosen: dict[str, Any] = {
        "busy_mode": settings.busy_input_mode,
        "strategy": settings.interrupt_strategy,
        "is_auto_queue": config.auto_queue.enabled,
    }
    return replace(Policy(), **chosen)


def _view(one: Deviation) -> dict[str, Any]:
    return {
        "seq": one.moment.seq,
        "what": one.moment.what,
        "text": one.moment.text,
        "state": str(one.moment.doing),
        "here": one.ours,
        "there": one.theirs,
        "rule_here": one.our_rule,
        "rule_there": one.their_rule,
    }


def _lines(done: Replay, name: str) -> list[str]:
    lines: list[str] = []
    for one in done.deviations:
        said = f", `{_short(one.moment.text)}`" if one.moment.text else ""
        lines.append(f"{one.moment.what}{said}, while {SITUATIONS[one.moment.doing]}:")
        lines.append(f"  here: {one.ours or 'nobody was told anything'}")
        lines.append(f"  under {name}: {one.theirs or 'nobody is told anything'}")
    messages, others = done.looked_at.get("message", 0), done.looked_at.get("other", 0)
    looked = f"Looked at {_count(messages, 'message')} and {_count(others, 'other moment')}"
    return [*lines, f"{looked}: {len(done.deviations) or 'none'} would have been different."]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."
