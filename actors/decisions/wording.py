"""A message as the model reads it: its text, its sender, and where it was interrupted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...journal.queue_record import ItemRecord
from ...machines import protocol as m
from ...machines.conversation import Picture, rendered
from ...machines.pattern import lazy_pattern

TASK = "task"
"""The client id of a child's first message."""

NAMED = "[New message from "
"""Begins a message of somebody else than the session's owner."""
LEAD = lazy_pattern(
    r"^(?=[ \t]*\[((New message|Result) from |Asked beside the work:))", re.MULTILINE
)


def words(item: ItemRecord, is_named: bool = False) -> str:
    """Return what the model reads of a message, with what is attached to it."""
    return spoken(item, is_named) + LEAD.sub("> ", rendered(item.said.attached))


def pictures_of(items: Iterable[ItemRecord]) -> tuple[Picture, ...]:
    """Return the pictures that are attached to messages, in their order."""
    return tuple(
        file.picture for item in items for file in item.said.attached if file.picture is not None
    )


def is_of_another(item: ItemRecord, owner: str) -> bool:
    """Whether a person other than the session's owner sent a message; a child's task is its owner's."""
    is_named = item.said.user not in ("", owner) and item.said.client_id != TASK
    return is_named and item.kind is not m.ItemKind.GOAL


def spoken(item: ItemRecord, is_named: bool = False) -> str:
    """Return the text of a message; `is_named`: under the name of its sender.

    A line inside a message that looks like such a name is marked as cited, so that no sender can speak
    for another.
    """
    if item.kind is m.ItemKind.TALK:
        asked, answer = (LEAD.sub("> ", text) for text in (item.said.text, item.answer))
        return f"[Asked beside the work: {asked}] The answer was:\n{answer}"
    if item.child:
        return f"[Result from {item.child}] {LEAD.sub('> ', item.said.text)}"
    if is_named:
        return f"{NAMED}{_name(item.said.user)}] {LEAD.sub('> ', item.said.text)}"
    return item.said.text


def _name(user: str) -> str:
    """Write a name on one line, without the mark that ends it."""
    return " ".join(user.replace("]", " ").replace("[", " ").split())[:60] or "user"


def chosen(there: list[ItemRecord], number: int | None) -> ItemRecord | None:
    """Pick the item with a number; without one the oldest that was interrupted, or the first."""
    if number:
        return next((item for item in there if item.number == number), None)
    interrupted = [item for item in there if item.state == "interrupted"]
    return next(iter(interrupted or there), None)


def with_news(news: str, item: ItemRecord, owner: str) -> str:
    """Put what happened to the files since in front of the message."""
    said = words(item, is_of_another(item, owner))
    said = f"{opening(item)}\n{said}" if item.state == "interrupted" else said
    return f"{news}\n{said}" if news else said


def opening(item: ItemRecord) -> str:
    """Tell the model where it was when it was interrupted."""
    if item.is_reverted:
        return (
            "[You were interrupted, and your changes were reverted. Start again. What a call did "
            "elsewhere may still be so: look before you repeat it.]"
        )
    progress, at = item.progress, ""
    if progress:
        unit = f"{progress['unit']} " if progress["unit"] else ""
        at = f" at {unit}{progress['done']}/{progress['total']}"
    return (
        f"[You were interrupted{at}. Go on from there. A call without a result may or may not have "
        "had its effect: look before you repeat it.]"
    )
