"""Events of Matrix: as values, of which nothing is trusted, and the content of those that are sent.

No text that is sent is markup or a mention by accident.
Source: https://spec.matrix.org/latest/client-server-api/#instant-messaging
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias, cast

from markdown_it import MarkdownIt

from ...gateway.chat.platform import Outgoing
from ...machines.value import Value
from ...ports.models.loose_json import table

# What is received ---------------------------------------------------------------------------------


Event: TypeAlias = dict[str, Any]

CHOICES = "steersman.choices"
"""The key of a question's content under which it has its choices: emoji -> choice."""

LARGEST_FILE = 256 * 1024
"""Bytes of a file that is downloaded."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FALLBACK = re.compile(r"> (\* )?<@[^>\n]*>")
_MXC = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")
_TEXT_TYPES = ("application/json", "application/toml", "application/xml", "application/x-sh")
_ENDINGS = re.compile(
    r"\.(c|cfg|conf|cpp|css|csv|diff|go|h|html?|ini|java|js|json|jsonl|log|md|patch|py|rs|rst|sh|sql|tex"
    r"|toml|ts|tsv|txt|xml|ya?ml)",
    re.IGNORECASE,
)
_FILES = {"m.file", "m.image", "m.audio", "m.video"}


class MatrixFile(Value):
    """A file of a message: `server` and `media` say where its content is, if it can be read."""

    name: str
    size: int
    server: str = ""
    media: str = ""
    is_text: bool = False


class MatrixMessage(Value):
    """A message, or the changed one of an edit; `replaces` is then the message that it replaces.

    `mentions` are the users that it is for.
    """

    text: str
    to: str = ""
    thread: str = ""
    replaces: str = ""
    mentions: tuple[str, ...] = ()
    attachment: MatrixFile | None = None


def word(value: object) -> str:
    """Return a string, an empty one if the value is none."""
    return value if isinstance(value, str) else ""


def plain(text: str) -> str:
    r"""Return a text without control characters but `\n` and `\t`, and without halves of characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", lines).encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, longest: int = 200) -> str:
    """Return what is printable of a text, as one line."""
    spaced = " ".join(text.split())
    return "".join(letter for letter in spaced if letter.isprintable())[:longest]


def read_message(content: Event) -> MatrixMessage | None:
    """Read the content of an `m.room.message`; none if it is a notice, or says nothing.

    Notices are what programs say to people; who answers them has loops.
    """
    relation = table(content.get("m.relates_to"))
    kind, target = relation.get("rel_type"), word(relation.get("event_id"))
    replaces = target if kind == "m.replace" else ""
    shown = table(content.get("m.new_content")) if replaces else content
    msgtype = word(shown.get("msgtype"))
    if not msgtype or "m.notice" in (msgtype, content.get("msgtype")):
        return None
    thread = target if kind == "m.thread" else ""
    to = word(table(relation.get("m.in_reply_to")).get("event_id"))
    if thread and relation.get("is_falling_back") is True:
        to = ""
    text = plain(word(shown.get("body")))
    if to and not replaces:
        text = _without_quote(text)
    attachment = _attachment(shown, text) if msgtype in _FILES else None
    if attachment and word(shown.get("filename")) in ("", word(shown.get("body"))):
        text = ""  # the body is then the name of the file, and no words about it
    if not text and not attachment:
        return None
    users: object = table(shown.get("m.mentions")).get("user_ids")
    mentions = tuple(map(word, cast("list[object]", users))) if isinstance(users, list) else ()
    return MatrixMessage(
        text=text, to=to, thread=thread, replaces=replaces, mentions=mentions, attachment=attachment
    )


def _without_quote(text: str) -> str:
    """Leave out the lines with which older clients repeat the message that is answered."""
    if not _FALLBACK.match(text):
        return text
    lines = text.split("\n")
    quoted = next((at for at, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[quoted:]).removeprefix("\n")


def _attachment(content: Event, body: str) -> MatrixFile:
    about = table(content.get("info"))
    name = one_line(word(content.get("filename")) or body) or "file"
    size: object = about.get("size")
    mimetype = word(about.get("mimetype")).partition(";")[0].strip().lower()
    ending = _ENDINGS.fullmatch(name[name.rfind(".") :]) if "." in name else None
    place = _MXC.fullmatch(word(content.get("url")))
    return MatrixFile(
        name=name,
        size=size if isinstance(size, int) and size >= 0 else 0,
        server=place[1] if place else "",
        media=place[2] if place else "",
        is_text=mimetype.startswith("text/") or mimetype in _TEXT_TYPES or ending is not None,
    )


def is_entry(event: Event, account: str) -> bool:
    """Whether the event is that the account enters the room: what is before it is not for us."""
    content, unsigned = table(event.get("content")), table(event.get("unsigned"))
    if event.get("type") != "m.room.member" or event.get("state_key") != account:
        return False
    before = table(unsigned.get("prev_content"))
    was_in = before.get("membership") == "join" or ("replaces_state" in unsigned and not before)
    return content.get("membership") == "join" and not was_in


# What is sent -------------------------------------------------------------------------------------


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
    if _is_too_large(content):
        _make_plain(content)
    return content


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
    if _is_too_large(content):
        _make_plain(new)
    if _is_too_large(content):
        content["body"] = f"* {new['body'][:1000]} …"  # for clients that know no changes
    return content


def _body(message: Outgoing) -> dict[str, Any]:
    text = plain(message.text)
    mentions = {"user_ids": [message.mentions]} if message.mentions else {}
    content: dict[str, Any] = {"msgtype": "m.notice", "body": text, "m.mentions": mentions}
    if message.kind == "answer":
        content["msgtype"] = "m.text"
        content["format"] = "org.matrix.custom.html"
        content["formatted_body"] = _MARKDOWN.render(text).strip()
    if message.choices:
        named = reactions(message.choices)
        legend = " · ".join(f"{emoji} {plain(choice)}" for emoji, choice in named.items())
        content |= {"body": f"{text}\n\n{legend}", CHOICES: named}
        _make_plain(content)
    return content


def _make_plain(content: dict[str, Any]) -> None:
    """Leave the formatted text out."""
    content.pop("formatted_body", None)
    content.pop("format", None)


def _is_too_large(content: dict[str, Any]) -> bool:
    return len(json.dumps(content, ensure_ascii=False).encode()) > _LARGEST_CONTENT
