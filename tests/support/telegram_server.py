"""A server of Telegram's Bot API, in a process of its own, and what people do there.

Written from https://core.telegram.org/bots/api; where that is silent (what a second `getUpdates` does to
the first, the words of errors), it does what Telegram's published server does. Run as a program, it keeps
its state in a file after each change, so that it can be killed and started again.

`TelegramServer` starts and ends it; its methods are what people do, over the same port under `/people`.
"""

import argparse
import base64
import json
import os
import random
import re
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.loopback import LoopbackRequest
from support.patience import seconds
from support.server_program import ServerProgram

Object = dict[str, Any]

TOKEN = "700001:AAcanary-of-this_server-0123456789abc"
BOT = {
    "id": 700001,
    "is_bot": True,
    "first_name": "Steersman",
    "username": "steersman_bot",
    "can_join_groups": True,
    "can_read_all_group_messages": True,
    "supports_inline_queries": False,
}
GROUP_ANONYMOUS = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
USUAL_UPDATES = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "callback_query",
)
UPDATES = (*USUAL_UPDATES, "message_reaction", "my_chat_member")
ENTITIES = {
    *(
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
    ),
    *(
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
    ),
    *("text_link", "text_mention", "custom_emoji"),
}
MOST = 4096
"""Code units of UTF-16 in one message, after its entities are parsed."""

# The server ------------------------------------------------------------------------------------------


class _Refused(Exception):
    """A method fails: a code, a description, and perhaps parameters."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters

    def body(self) -> Object:
        found: Object = {"ok": False, "error_code": self.code, "description": self.description}
        return found | ({"parameters": self.parameters} if self.parameters else {})


def _bad(description: str, **parameters: int) -> _Refused:
    return _Refused(400, f"Bad Request: {description}", **parameters)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class _Service:
    """The state of the server, and its methods; all are called under `changed`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed = threading.Condition()
        self.poller = 0
        self.log: list[Object] = []
        self.newest: Object = {}
        self.sent: dict[str, list[float]] = {}
        self.state: Object = {
            "next_update": random.randrange(100_000_000, 900_000_000),
            "updates": [],
            "allowed": list(USUAL_UPDATES),
            "chats": {},
            "people": {},
            "messages": {},
            "files": {},
            "next_message": {},
            "queries": {},
            "out": {},
            "moved": {},
            "webhook": "",
            "rate": [0, 1.0],
            "breaks": {},
            "fails": {},
        }
        if path.exists():
            self.state = json.loads(path.read_text())

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.state))
        os.replace(new, self.path)

    # What people do

    def person(self, id: int, first_name: str, **more: Any) -> None:
        self.state["people"][str(id)] = {"id": id, "is_bot": False, "first_name": first_name} | more

    def chat(self, id: int, type: str, **more: Any) -> None:
        self.state["chats"][str(id)] = {"id": id, "type": type, "status": "administrator"} | more

    def say(
        self,
        chat: int,
        user: int,
        text: str = "",
        to: int = 0,
        thread: int = 0,
        sender_chat: int = 0,
        document: Object | None = None,
        **more: Any,
    ) -> int:
        message = self._message(chat) | more
        if sender_chat:
            message["sender_chat"] = self._shown(sender_chat)
        if user:
            message["from"] = self.state["people"][str(user)]
        elif message["chat"]["type"] != "channel":
            message["from"] = GROUP_ANONYMOUS
        if to:
            message["reply_to_message"] = self._answered(chat, to)
        if thread:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if document:
            content = base64.b64decode(document["content"])
            file = f"file{len(self.state['files'])}"
            self.state["files"][file] = document["content"]
            message["document"] = {
                "file_id": file,
                "file_unique_id": file,
                "file_name": document["name"],
                "file_size": len(content),
            }
            message |= {"caption": text} if text else {}
        elif text:
            message["text"] = text
        self._keep(message)
        kind = "channel_post" if message["chat"]["type"] == "channel" else "message"
        self._update(kind, message)
        return int(message["message_id"])

    def edit(self, chat: int, message: int, text: str) -> None:
        found = self._found(chat, message)
        found |= {"text": text, "edit_date": int(time.time())}
        kind = "edited_channel_post" if found["chat"]["type"] == "channel" else "edited_message"
        self._update(kind, found)

    def press(self, chat: int, message: int, user: int, button: int = 0, data: str = "") -> str:
        found = self._found(chat, message)
        rows = found["reply_markup"]["inline_keyboard"] if not data else []
        data = data or [one for row in rows for one in row][button]["callback_data"]
        query = str(len(self.state["queries"]) + 4_000_000_000)
        self.state["queries"][query] = ""
        self._update(
            "callback_query",
            {
                "id": query,
                "from": self.state["people"][str(user)],
                "message": found,
                "chat_instance": "1",
                "data": data,
            },
        )
        return query

    def react(
        self, chat: int, message: int, user: int, emoji: list[str], actor_chat: int = 0
    ) -> None:
        found = self._found(chat, message)
        who = str(actor_chat or user)
        before = found.setdefault("reactions", {}).get(who, [])
        found["reactions"][who] = emoji
        actor: Object = {"user": self.state["people"].get(str(user))}
        if actor_chat:
            actor = {"actor_chat": self._shown(actor_chat)}
        change = {
            "chat": self._shown(chat),
            "message_id": message,
            "date": int(time.time()),
            "old_reaction": [{"type": "emoji", "emoji": one} for one in before],
            "new_reaction": [{"type": "emoji", "emoji": one} for one in emoji],
        }
        self._update("message_reaction", change | actor)

    def migrate(self, old: int, new: int, *, is_silent: bool = False) -> None:
        chat = self.state["chats"][str(old)]
        self.state["chats"][str(new)] = chat | {"id": new, "type": "supergroup"}
        self.state["moved"][str(old)] = new
        if not is_silent:
            gone = self._message(old) | {"migrate_to_chat_id": new, "from": GROUP_ANONYMOUS}
            come = self._message(new) | {"migrate_from_chat_id": old, "from": GROUP_ANONYMOUS}
            self._update("message", gone)
            self._update("message", come)

    def remove(self, chat: int, reason: str) -> None:
        """Take the bot out of a chat: the words of the error that it gets from now on."""
        self.state["out"][str(chat)] = reason

    def put(self, name: str, value: Any) -> None:
        """Change a switch: `rate`, `breaks`, `fails`, `webhook`."""
        assert name in ("rate", "breaks", "fails", "webhook"), name
        self.state[name] = value

    def raw(self, update: Object) -> int:
        """Add an update as it is, but for its id."""
        return self._append(update)

    def forget(self) -> None:
        """Drop all updates, as after a day, and go on with other ids, as after a week."""
        self.state["updates"] = []
        self.state["next_update"] = random.randrange(1000, 90_000_000)

    def messages(self, chat: int) -> list[Object]:
        return [
            message for message in self.state["messages"].values() if message["chat"]["id"] == chat
        ]

    def calls(self) -> list[Object]:
        return self.log

    def queries(self) -> Object:
        return self.state["queries"]

    def pending(self) -> int:
        return len(self.state["updates"])

    def last(self) -> list[Object]:
        return [self.newest]

    def polling(self) -> int:
        return self.poller

    # What they are made of

    def _append(self, update: Object) -> int:
        number = self.state["next_update"]
        self.state["next_update"] = number + 1
        self.newest = {"update_id": number} | update
        self.state["updates"].append(self.newest)
        return number

    def _update(self, kind: str, content: Object) -> None:
        if kind in self.state["allowed"]:
            shown = {key: value for key, value in content.items() if key != "reactions"}
            self._append({kind: json.loads(json.dumps(shown))})

    def _shown(self, chat: int | str) -> Object:
        found = self.state["chats"][str(chat)]
        hidden = ("status", "members", "managers")
        return {key: value for key, value in found.items() if key not in hidden}

    def _message(self, chat: int) -> Object:
        number = self.state["next_message"].get(str(chat), 0) + 1
        self.state["next_message"][str(chat)] = number
        return {"message_id": number, "date": int(time.time()), "chat": self._shown(chat)}

    def _keep(self, message: Object) -> None:
        self.state["messages"][f"{message['chat']['id']}/{message['message_id']}"] = message

    def _found(self, chat: int, message: int) -> Object:
        found = self.state["messages"].get(f"{chat}/{message}")
        if found is None:
            raise _bad("message not found")
        return found

    def _answered(self, chat: int, message: int) -> Object:
        found = self._found(chat, message)
        return {key: value for key, value in found.items() if key != "reply_to_message"}

    # Methods of the Bot API

    def call(self, method: str, given: Object) -> Any:
        """Call a method by its name, in whichever case."""
        found = METHODS.get(method.lower())
        if found is None:
            raise _Refused(404, "Not Found: method not found")
        self.log.append({"method": found.__name__, "given": given})
        code = self.state["fails"].get(found.__name__, 0)
        if code:
            raise _Refused(code, {502: "Bad Gateway", 403: "Forbidden: no"}.get(code, "failed"))
        result = found(self, given)
        self.save()
        self.changed.notify_all()
        return result

    def getMe(self, given: Object) -> Any:
        return BOT

    def getUpdates(self, given: Object) -> Any:
        if self.state["webhook"]:
            raise _Refused(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        offset, limit = int(given.get("offset", 0)), int(given.get("limit", 100))
        limit = limit if 1 <= limit <= 100 else 100
        if "allowed_updates" in given:
            names = [one for one in _json(given["allowed_updates"]) if one in UPDATES]
            self.state["allowed"] = names or list(USUAL_UPDATES)
        if offset < 0:
            self.state["updates"] = self.state["updates"][offset:]
        end = time.monotonic() + max(0, min(int(given.get("timeout", 0)), 50))
        if (
            0 < offset <= self.state["next_update"] + 10
        ):  # one from another numbering confirms nothing
            kept = [update for update in self.state["updates"] if update["update_id"] >= offset]
            if len(kept) < len(self.state["updates"]):
                self.state["updates"] = kept
                self.save()
        if not self.state["updates"] and end > time.monotonic():
            self.poller += 1
            mine = self.poller
            self.changed.notify_all()
            while not self.state["updates"] and (left := end - time.monotonic()) > 0:
                self.changed.wait(left)
                if self.poller != mine:
                    raise _Refused(
                        409,
                        "Conflict: terminated by other getUpdates request; "
                        "make sure that only one bot instance is running",
                    )
        return self.state["updates"][:limit]

    def sendMessage(self, given: Object) -> Any:
        chat = self._chat_for(given)
        text, entities = self._text(given)
        markup = self._markup(given)
        message: Object = {}
        if thread := int(given.get("message_thread_id") or 0):
            if thread not in self.state["chats"][str(chat)].get("topics", []):
                raise _bad("message thread not found")
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if "reply_parameters" in given:
            reply = _json(given["reply_parameters"])
            key = f"{reply.get('chat_id', chat)}/{reply['message_id']}"
            if key in self.state["messages"]:
                message["reply_to_message"] = self._answered(chat, int(reply["message_id"]))
            elif not reply.get("allow_sending_without_reply"):
                raise _bad("message to be replied not found")
        self._spend(chat)
        message = self._message(chat) | message | {"from": BOT, "text": text}
        message |= {"entities": entities} if entities else {}
        message |= {"reply_markup": markup} if markup else {}
        if "link_preview_options" in given:
            message["link_preview_options"] = _json(given["link_preview_options"])
        self._keep(message)
        return message

    def editMessageText(self, given: Object) -> Any:
        chat = self._chat_for(given)
        found = self.state["messages"].get(f"{chat}/{given.get('message_id')}")
        if found is None:
            raise _bad("message to edit not found")
        if found.get("from", {}).get("id") != BOT["id"]:
            raise _bad("message can't be edited")
        text, entities = self._text(given)
        markup = self._markup(given)
        before = (found["text"], found.get("entities", []), found.get("reply_markup"))
        if before == (text, entities, markup):
            raise _bad(
                "message is not modified: specified new message content and reply markup "
                "are exactly the same as a current content and reply markup of the message"
            )
        self._spend(chat)
        for name in ("entities", "reply_markup"):
            found.pop(name, None)
        found |= {"text": text, "edit_date": int(time.time())}
        found |= {"entities": entities} if entities else {}
        found |= {"reply_markup": markup} if markup else {}
        return found

    def answerCallbackQuery(self, given: Object) -> Any:
        query = str(given.get("callback_query_id"))
        if query not in self.state["queries"] or self.state["queries"][query]:
            raise _bad("query is too old and response timeout expired or query ID is invalid")
        self.state["queries"][query] = "answered"
        return True

    def sendChatAction(self, given: Object) -> Any:
        self._chat_for(given)
        if given.get("action") != "typing":
            raise _bad("wrong parameter action in request")
        return True

    def getChat(self, given: Object) -> Any:
        chat = self._chat_for(given)
        more = {"accent_color_id": 0, "max_reaction_count": 11}
        gifts = {"unlimited_gifts": True, "limited_gifts": True, "unique_gifts": True}
        gifts |= {"premium_subscription": True, "gifts_from_channels": True}
        return self._shown(chat) | more | {"accepted_gift_types": gifts}

    def getChatMember(self, given: Object) -> Any:
        chat = self._chat_for(given)
        if int(given["user_id"]) == BOT["id"]:
            status = self.state["chats"][str(chat)]["status"]
            return _member(BOT, status)
        person = self.state["people"].get(str(given["user_id"]))
        if person is None:
            raise _bad("user not found")
        return {"status": "member", "user": person}

    def getChatAdministrators(self, given: Object) -> Any:
        chat = self._chat_for(given)
        people = self.state["chats"][str(chat)].get("managers", [])
        found = [self.state["people"][str(one)] for one in people]
        return [{"status": "creator", "user": one, "is_anonymous": False} for one in found]

    def getFile(self, given: Object) -> Any:
        file = given.get("file_id", "")
        if file not in self.state["files"]:
            raise _bad("wrong file_id or the file is temporarily unavailable")
        size = len(base64.b64decode(self.state["files"][file]))
        if size > 20 * 1024 * 1024:
            raise _bad("file is too big")
        path = f"documents/{file}.dat"
        return {"file_id": file, "file_unique_id": file, "file_size": size, "file_path": path}

    def file(self, path: str) -> bytes | None:
        found = re.fullmatch(r"documents/(file\d+)\.dat", path)
        content = self.state["files"].get(found[1]) if found else None
        return base64.b64decode(content) if content else None

    # What the methods check

    def _chat_for(self, given: Object) -> int:
        name = str(given.get("chat_id", ""))
        if not name:
            raise _bad("chat_id is empty")
        for chat in self.state["chats"].values():
            if name.startswith("@") and chat.get("username", "").lower() == name[1:].lower():
                name = str(chat["id"])
        if name not in self.state["chats"]:
            raise _bad("chat not found")
        if new := self.state["moved"].get(name):
            raise _bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=new)
        if reason := self.state["out"].get(name):
            raise _Refused(403, f"Forbidden: {reason}")
        return int(name)

    def _spend(self, chat: int) -> None:
        """Count a message; refuses what comes faster than the rate."""
        count, span = self.state["rate"]
        now = time.monotonic()
        times = [one for one in self.sent.get(str(chat), []) if now - one < span]
        if count and len(times) >= count:
            left = max(1, round(span - (now - times[0])))
            raise _Refused(429, f"Too Many Requests: retry after {left}", retry_after=left)
        self.sent[str(chat)] = [*times, now]

    def _text(self, given: Object) -> tuple[str, list[Object]]:
        text = str(given.get("text", "")).encode("utf-8", "strict").decode()
        if given.get("parse_mode"):
            raise _bad("unsupported parse_mode")
        entities: list[Object] = _json(given["entities"]) if "entities" in given else []
        text = re.sub("[\x00-\x09\x0b\x0c\x0e-\x1f]", " ", text.replace("\r", ""))
        text = text.rstrip()
        if not text.strip():
            raise _bad("message text is empty")
        if _units(text) > MOST:
            raise _bad("message is too long")
        return text, _checked(text, entities, self.state["people"])

    def _markup(self, given: Object) -> Object | None:
        if "reply_markup" not in given:
            return None
        markup = _json(given["reply_markup"])
        for row in markup.get("inline_keyboard", []):
            for button in row:
                if not str(button.get("text", "")).strip():
                    raise _bad("inline keyboard button text must be non-empty")
                data = button.get("callback_data", "")
                if not 1 <= len(data.encode()) <= 64:
                    raise _bad("BUTTON_DATA_INVALID")
        return markup


IS_METHOD = re.compile(r"(get|set|send|edit|delete|answer)[A-Z]\w+")
NAMES = [name for name in vars(_Service) if IS_METHOD.fullmatch(name)]
METHODS: dict[str, Callable[..., Any]] = {name.lower(): getattr(_Service, name) for name in NAMES}


def _member(user: Object, status: str) -> Object:
    found: Object = {"status": status, "user": user}
    if status == "administrator":
        rights: tuple[str, ...] = (
            "can_be_edited",
            "is_anonymous",
            "can_manage_chat",
            "can_delete_messages",
        )
        rights += ("can_manage_video_chats", "can_restrict_members", "can_promote_members")
        rights += ("can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories")
        found |= dict.fromkeys((*rights, "can_delete_stories", "can_send_welcome_messages"), False)
    if status == "kicked":
        found["until_date"] = 0
    return found


def _json(value: Any) -> Any:
    """Return a parameter that is an object or an array, which forms carry as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise _bad("object expected as a JSON-serialized string") from None


def _checked(text: str, entities: list[Object], people: Object) -> list[Object]:
    """Return the entities that a message gets: the given ones, then the mentions that are found."""
    starts = {0}
    at = 0
    for sign in text:
        at += _units(sign)
        starts.add(at)
    kept: list[Object] = []
    for entity in sorted(entities, key=lambda one: (one["offset"], -one["length"])):
        kind, start, length = entity.get("type"), entity["offset"], entity["length"]
        if kind not in ENTITIES:
            raise _bad("can't parse MessageEntity: Unsupported type specified")
        end = min(start + length, at)
        if start < 0 or length <= 0 or start >= at:
            continue
        if start not in starts or end not in starts:
            raise _bad(
                f"entity beginning at UTF-16 offset {start} is in the middle of a UTF-16 symbol"
            )
        if kind == "text_mention" and str(entity["user"]["id"]) not in people:
            continue
        overlapping = [row for row in kept if row["offset"] + row["length"] > start]
        if any(
            event["type"] in ("code", "pre") or kind in ("code", "pre") for event in overlapping
        ):
            continue
        kept.append(entity | {"length": end - start})
        if kind == "text_mention":
            kept[-1]["user"] = people[str(entity["user"]["id"])]
    kept = kept[:100]
    for found in re.finditer(r"(?<!\w)@[A-Za-z0-9_]{3,32}(?!\w)", text):
        start = _units(text[: found.start()])
        end = start + _units(found[0])
        if not any(row["offset"] < end and row["offset"] + row["length"] > start for row in kept):
            kept.append({"type": "mention", "offset": start, "length": end - start})
    return sorted(kept, key=lambda one: int(one["offset"]))


class _Handler(LoopbackRequest):
    """One connection; it is kept open as long as the client wants."""

    protocol_version = "HTTP/1.1"
    service: _Service

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        content = self.content()
        first, _, rest = parts.path.lstrip("/").partition("/")
        if first == "people":
            return self._people(rest, json.loads(content))
        if first == "file":
            token, _, path = rest.partition("/")
            with self.service.changed:
                found = self.service.file(path) if token == f"bot{TOKEN}" else None
            return self._reply(
                200 if found is not None else 404, found or b"Not Found", "text/plain"
            )
        given = dict(parse_qsl("&".join((parts.query, content.decode())), keep_blank_values=True))
        breaks = 0
        with self.service.changed:
            try:
                if first != f"bot{TOKEN}":
                    is_token = re.fullmatch(r"bot\d+:[\w-]+", first)
                    raise _Refused(401, "Unauthorized") if is_token else _Refused(404, "Not Found")
                body, code = {"ok": True, "result": self.service.call(rest, given)}, 200
            except _Refused as refusal:
                body, code = refusal.body(), refusal.code
            wanted = self.service.state["breaks"]
            name = {one.lower(): one for one in wanted}.get(rest.lower(), "")
            if breaks := wanted.get(name, 0):
                wanted[name] = breaks - 1
                self.service.save()
            answer = json.dumps(body).encode()
        if breaks:
            return self._break(answer)
        return self._reply(code, answer, "application/json")

    def _break(self, answer: bytes) -> None:
        """Close the connection in the middle of an answer."""
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode()
        self.wfile.write(head + answer[: len(answer) // 2])
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _people(self, action: str, given: Object) -> None:
        with self.service.changed:
            try:
                result = getattr(self.service, action)(**given)
                body: Object = {"result": result}
                self.service.save()
                self.service.changed.notify_all()
            except _Refused as refusal:
                body = refusal.body()
        self._reply(200, json.dumps(body).encode(), "application/json")

    def _reply(self, code: int, content: bytes, kind: str) -> None:
        try:
            self.reply(code, content, ("Content-Type", kind))
        except OSError:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    """Takes the port of one that was killed at once, and ends without waiting for its connections."""

    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args()
    _Handler.service = _Service(options.state)
    server = _Server(("127.0.0.1", options.port), _Handler)
    server.serve_forever()


# The tests' side -------------------------------------------------------------------------------------


class TelegramServer(ServerProgram):
    """The process of a server, on a port that stays the same; what people do there is `act`."""

    @property
    def url(self) -> str:
        """The Bot API's base address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, with the state that it had, and wait until it answers."""
        arguments = ["--port", str(self.port), "--state", str(self.folder / "telegram.json")]
        paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environ = os.environ | {"PYTHONPATH": paths}
        self.launch(sys.executable, __file__, *arguments, env=environ)

    def act(self, action: str, **given: Any) -> Any:
        """Do what a person does, or read what is there; see the methods of `_Service`."""
        request = urllib.request.Request(
            f"{self.url}/people/{action}",
            json.dumps(given).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=seconds(15)) as answer:
            body = json.load(answer)
        assert "result" in body, body
        return body["result"]


if __name__ == "__main__":
    main()
