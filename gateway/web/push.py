"""Web push: a browser that asked for it is told when a question waits, also while no page is open.

The message goes through the push service of the browser's maker (RFC 8030), which cannot read it: it is
encrypted for this browser (RFC 8291), and signed with a key of this home (RFC 8292). Only services of the
list `serve.push_services` are sent to, so that nobody makes this host ask another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, convert, field
from msgspec.structs import asdict

from ...journal.store import SessionRow
from ...machines.errors import UsageError
from ...machines.json_shape import parse_json
from ...workflows.paths import write_private
from ..chat.platform_parts import BackgroundTasks
from ..events.contract import Event, QuestionEvent
from ..wording.formats import call_words, one_line
from ..wording.redaction import Redactor

DELAY = 5.0
"""Seconds in which somebody who looks at the question may answer it, before browsers are told."""
MOST = 50
"""Browsers that are told."""
LASTS = 3600
"""Seconds for which the service keeps a message for a browser that is not there."""
_SECONDS = 10.0  # of one request to a service
_SIGNED = 12 * 3600  # seconds for which a signature is good
_TEXT = 200  # characters of what is shown
_GONE = (404, 410)


class Subscription(Struct, frozen=True):
    """A browser: where it is reached, its keys in base64url, and the id of the paired `device`."""

    device: str
    endpoint: str
    p256dh: str
    auth: str


class _Kept(Struct):
    key: str = ""  # the private key of this home, in base64url
    browsers: list[Subscription] = field(default_factory=list[Subscription])


class Push:
    """The browsers of a home that want to be told, in a file that only its host changes.

    `services` are the names of hosts, with a port if it is not 443, `*.` in front for all below one;
    `is_admitted` says of a device's id whether it is still paired.
    """

    def __init__(
        self, state: Path, services: tuple[str, ...], is_admitted: Callable[[str], bool]
    ) -> None:
        self._path = state / "push.json"
        self._services, self._is_admitted = services, is_admitted
        self._mutex = threading.RLock()
        self._kept = _Kept()
        with suppress(FileNotFoundError):
            self._kept = convert(parse_json(self._path.read_text("utf-8")), _Kept)

    def key(self) -> str:
        """Return the public key that a browser subscribes with; empty where push is not installed."""
        try:
            from .push_message import new_key, public_key
        except ImportError:  # an extra
            return ""
        with self._mutex:
            if not self._kept.key:
                self._kept.key = new_key()
                self._save()
        return public_key(self._kept.key)

    def add(self, browser: Subscription) -> None:
        """Tell a browser from now on. Raises `UsageError` if its service is none that is sent to."""
        if not self._may_send(browser.endpoint):
            raise UsageError(
                f"`{urlsplit(browser.endpoint).netloc}` is no push service that this host sends to",
                "serve.push_services lists them",
            )
        with self._mutex:
            self.remove(browser.endpoint)
            self._kept.browsers = [*self._kept.browsers, browser][-MOST:]
            self._save()

    def remove(self, endpoint: str) -> None:
        """Tell a browser no more. Idempotent."""
        with self._mutex:
            left = [known for known in self._kept.browsers if known.endpoint != endpoint]
            if len(left) < len(self._kept.browsers):
                self._kept.browsers = left
                self._save()

    def send(self, told: dict[str, str], topic: str, contact: str) -> None:
        """Tell every browser; blocks. One that is gone, or not paired any more, is forgotten.

        `told` is {title, text, address}; of several messages with one `topic` the service keeps the last.
        """
        for browser in tuple(self._kept.browsers):
            if not self._is_admitted(browser.device):
                self.remove(browser.endpoint)
            elif self._may_send(browser.endpoint):
                if self._post(browser, json.dumps(told).encode(), topic, contact) in _GONE:
                    self.remove(browser.endpoint)

    def _may_send(self, endpoint: str) -> bool:
        try:
            parts = urlsplit(endpoint)
            host = parts.hostname or ""
            name = host if parts.port in (None, 443) else f"{host}:{parts.port}"
        except ValueError:
            return False
        is_local = host in ("127.0.0.1", "localhost", "::1")
        if parts.scheme != "https" and not (is_local and parts.scheme == "http"):
            return False
        return any(
            name.endswith(one[1:]) if one.startswith("*.") else name == one
            for one in self._services
        )

    def _post(self, browser: Subscription, data: bytes, topic: str, contact: str) -> int:
        """Send one message; return the status, 0 if the service was not reached."""
        from .push_message import authorization, decoded, encrypted

        parts = urlsplit(browser.endpoint)
        audience, expires = f"{parts.scheme}://{parts.netloc}", int(time.time()) + _SIGNED
        try:
            body = encrypted(data, decoded(browser.p256dh), decoded(browser.auth))
        except ValueError:
            return _GONE[0]  # its keys are none
        headers = {
            "Authorization": authorization(self._kept.key, audience, contact, expires),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(LASTS),
            "Urgency": "high",
            "Topic": topic,
        }
        request = urllib.request.Request(browser.endpoint, body, headers, method="POST")
        try:
            with _OPENER.open(request, timeout=_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def _save(self) -> None:
        write_private(self._path, json.dumps(asdict(self._kept), default=asdict).encode())


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nothing: where a service sends us is on no list."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Leave the answer as it is."""


_OPENER = urllib.request.build_opener(_Straight)


class Bell:
    """Has browsers told of the questions that nobody has answered for a while; on the server's loop.

    `row_of` finds a session, and blocks; `contact` is whom a push service may write to.
    """

    def __init__(self, push: Push, row_of: Callable[[str], SessionRow], contact: str) -> None:
        self._push, self._row_of, self._contact = push, row_of, contact
        self._loop = asyncio.get_running_loop()
        self._tasks = BackgroundTasks()

    def hear(self, event: Event) -> None:
        """Take an event of any session; any thread."""
        if event["type"] == "question":
            self._loop.call_soon_threadsafe(lambda: self._tasks.start(self._ring(event)))

    async def _ring(self, event: QuestionEvent) -> None:
        await asyncio.sleep(DELAY)
        await asyncio.to_thread(self._tell, event)

    def _tell(self, event: QuestionEvent) -> None:
        if not self._row_of(event["session"]).asking:
            return
        above = self._row_of(event.get("parent") or event["session"])
        shown = Redactor(os.environ).data(asked_line(event))
        title = above.name or above.title or "steersman"
        told = {"title": title, "text": one_line(shown, _TEXT), "address": f"#/s/{above.session}"}
        topic = hashlib.sha256(f"{event['session']} {event['id']}".encode()).hexdigest()[:32]
        self._push.send(told, topic, self._contact)

    async def aclose(self) -> None:
        """Tell nobody any more."""
        await self._tasks.aclose()


def asked_line(event: QuestionEvent) -> str:
    """Say in a line what is asked."""
    words = " ".join(call_words(event["arguments"]))
    return words if event["kind"] == "ask" else f"May it run {event['tool']}? {words}"
