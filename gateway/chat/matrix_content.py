"""What is sent to Matrix, as the content of events: no text is markup or a mention by accident.

Source: https://spec.matrix.org/latest/client-server-api/#mroommessage-msgtypes
"""

from __future__ import annotations

import json
from typing import Any

from markdown_it import MarkdownIt

from .matrix_events import CHOICES, plain
from .platform import Outgoing

# An event may have 65,536 bytes, with its signatures and what it refers to. A text may take twice its own
# bytes as JSON (a quotation mark, a new line), and a change has it twice unless that is too much.
LARGEST_TEXT = 24_000
_LARGEST_CONTENT = 58_000

_EMOJI = {
    "allow": "✅",
    "yes": "✅",
    "allow always": "♾️",
    "always": "♾️",
    "deny": "❌",
    "no": "❌",
    "cancel": "🚫",
}
_NUMBERS = ("1️⃣", "2️⃣", "3️⃣", "4️⃣", "5️⃣", "6️⃣", "7️⃣", "8️⃣", "9️⃣", "🔟")

# Everything is escaped but these: code, and words that are strong. No links, no pictures, no HTML.
_MARKDOWN = MarkdownIt("zero", {"breaks": True, "html": False}).enable(
    ["fence", "backticks", "emphasis", "newline", "escape"]
)


def reactions(choices: tuple[str, ...]) -> dict[str, str]:
    """Return the emoji of each choice, as emoji -> choice: by its name, else a number."""
    found: dict[str, str] = {}
    numbers = iter(_NUMBERS)
    for choice in choices:
        emoji = _EMOJI.get(choice.casefold(), "")
        if not emoji or emoji in found:
            emoji = next(numbers, "")
        if emoji:
            found[emoji] = choice
    return found


def bare(emoji: str) -> str:
    """Return an emoji without the mark that asks for its coloured form, which some clients add."""
    return emoji.replace("\ufe0f", "")


def message_content(message: Outgoing) -> dict[str, Any]:
    """Return the content of a new message."""
    content = _body(message)
    if message.thread:
        content["m.relates_to"] = {
            "rel_type": "m.thread",
            "event_id": message.thread,
            "is_falling_back": not message.to,
            "m.in_reply_to": {"event_id": message.to or message.thread},
        }
    elif message.to:
        content["m.relates_to"] = {"m.in_reply_to": {"event_id": message.to}}
    return _within(content)


def change_content(message: str, sent: Outgoing) -> dict[str, Any]:
    """Return the content of an event that changes a message."""
    new = _body(sent)
    content = {
        "msgtype": new["msgtype"],
        "body": f"* {new['body']}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": message},
    }
    if _size(content) > _LARGEST_CONTENT:
        new.pop("formatted_body", None)
        new.pop("format", None)
    if _size(content) > _LARGEST_CONTENT:
        content["body"] = f"* {new['body'][:1000]} …"  # for clients that know no changes
    return content


def _body(message: Outgoing) -> dict[str, Any]:
    text = plain(message.text)
    mentions = {"user_ids": [message.mentions]} if message.mentions else {}
    content: dict[str, Any] = {"msgtype": "m.notice", "body": text, "m.mentions": mentions}
    if message.kind == "answer":
        content["msgtype"] = "m.text"
        content |= {
            "format": "org.matrix.custom.html",
            "formatted_body": _MARKDOWN.render(text).strip(),
        }
    if message.choices:
        named = reactions(message.choices)
        legend = " · ".join(f"{emoji} {plain(choice)}" for emoji, choice in named.items())
        content |= {"body": f"{text}\n\n{legend}", CHOICES: named}
        content.pop("formatted_body", None)
        content.pop("format", None)
    return content


def _within(content: dict[str, Any]) -> dict[str, Any]:
    """Leave the formatted text out if the event became too large with it."""
    if _size(content) > _LARGEST_CONTENT:
        content.pop("formatted_body", None)
        content.pop("format", None)
    return content


def _size(content: dict[str, Any]) -> int:
    return len(json.dumps(content, ensure_ascii=False).encode())
