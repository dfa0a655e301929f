"""What an actor shows of itself when it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..journal.codec import encode
from ..journal.log import Log
from .goal import Goal
from .judge import Judge

if TYPE_CHECKING:
    from .ledger import Ledger
    from .mailbox import Mailbox
    from .supervisor import Child

__all__ = ["inspect_session"]


def inspect_session(ledger: Ledger, mailbox: Mailbox, children: dict[str, Child]) -> dict[str, Any]:
    """Return the session's record without its conversation, and its actors, as plain data."""
    record = ledger.record
    data: dict[str, Any] = encode(replace(record, conversation=Log(), sources=Log()))
    data["messages"] = record.spoken
    data["actors"] = {
        "session": {"mailbox": _depth(mailbox)},
        **{name: _of_child(child) for name, child in children.items()},
        **_judge(children),
    }
    return data


def _judge(children: dict[str, Child]) -> dict[str, Any]:
    """Return the judge beneath the goal, while one looks; how far it is, only it knows."""
    goal = children["goal"].mailbox.owner if "goal" in children else None
    found = goal.children.get("judge") if isinstance(goal, Goal) else None
    judge = found.mailbox.owner if found else None
    if found is None or not isinstance(judge, Judge):
        return {}
    return {"judge": {**_of_child(found), "state": judge.state}}


def _of_child(child: Child) -> dict[str, Any]:
    """Return how a child does: its mail by lane, and how often it was restarted."""
    return {"mailbox": _depth(child.mailbox), "restarts": child.restarts}


def _depth(mailbox: Mailbox) -> dict[str, int]:
    system, control, data = mailbox.depth()
    return {"system": system, "control": control, "data": data}
