"""Requests to Telegram's Bot API: whether the server may have one that failed, and no token in logs.

The token is part of each address, which the HTTP client keeps in its exceptions, and logs.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import httpx
from telegram.error import NetworkError, TelegramError
from telegram.request import HTTPXRequest

UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What the library raises for an object that lacks a field, or has one of another type."""

_TOKEN = re.compile(r"(?<=/bot)[0-9]+:[^/\s]+|[0-9]{5,20}:[A-Za-z0-9_-]{20,}")


class _HideTokens(logging.Filter):
    """Removes tokens from log records: the HTTP client and the library log their addresses."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = without_token(record.getMessage()), ()
        return True


_FILTER = _HideTokens()


class Unreached(NetworkError):
    """There was no connection: the server has nothing of the request."""


class UnknownOutcome(NetworkError):
    """The connection broke, or the server failed: it may have done what was asked."""


class Flooded(TelegramError):
    """The server asks for a pause."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many requests: retry after {seconds:g} seconds")
        self.seconds = seconds


class TelegramRequest(HTTPXRequest):
    """The library's HTTP client, with errors that say whether the server may have the request.

    The library's `RetryAfter` is avoided: creating one issues a warning in version 22.
    """

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Request something; see the library."""
        failed: NetworkError  # raised behind the `except`: the cause has the address in it
        try:
            code, payload = await super().do_request(*args, **kwargs)
        except NetworkError as error:
            failed = _failure(error.__cause__)
        except (httpx.InvalidURL, RuntimeError) as error:
            failed = UnknownOutcome(type(error).__name__)
        else:
            return _answer(code, payload)
        raise failed


def _failure(cause: BaseException | None) -> NetworkError:
    """Return whether the server may have what was sent, by how the HTTP client failed."""
    reason = type(cause).__name__
    unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    return Unreached(f"{reason}: {cause}") if isinstance(cause, unsent) else UnknownOutcome(reason)


def _answer(code: int, payload: bytes) -> tuple[int, bytes]:
    """Return an answer that the library may read."""
    if code == 429:
        raise Flooded(_retry_after(payload))
    if code >= 500:
        raise UnknownOutcome(f"the server answers with {code}")
    return code, payload


def _retry_after(payload: bytes) -> float:
    """Return the seconds that a flooded server asks for, 5 if it does not say."""
    try:
        return max(1.0, float(json.loads(payload)["parameters"]["retry_after"]))
    except UNREADABLE:
        return 5.0


def without_token(text: str) -> str:
    """Return a text without the tokens that are in it."""
    return _TOKEN.sub("(token)", text)


def hide_tokens() -> None:
    """Remove tokens from what the HTTP client and the library log."""
    for logger in ("httpx", "telegram.Bot"):
        logging.getLogger(logger).addFilter(_FILTER)
