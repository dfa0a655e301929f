"""The error messages about a model server: its address, its own message, and the next step.

Every method returns a `ServerFault` and raises nothing. The server's own message is shown as its first
200 printable characters, without the key.
"""

import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ...machines.json_shape import parse_json
from ...machines.value import Value
from .loose_json import table, tables
from .retry import BrokenAnswer, ServerFault
from .route import ConnectTimeout

_REPEATS = 4  # of an answer that broke off, if nothing of it was shown
_SHOWN = 200  # characters of a server's own message
_BUSY = {
    408: "server timed out (408)",
    425: "server is not ready (425)",
    429: "server is busy (429)",
    500: "server failed (500)",
    502: "gateway failed (502)",
    503: "server is unavailable (503)",
    504: "gateway timed out (504)",
    529: "server is overloaded (529)",
}
_CODES = {
    "overloaded": 529,
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "api_error": 500,
    "internal": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "bad_gateway": 502,
    "service_unavailable": 503,
    "unavailable": 503,
    "timeout": 504,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
}
"""The statuses that errors inside an answer name by a word, in lower case."""
_ANSWERS = {"choices", "delta", "content", "usage"}
_REASONS = ("message", "msg", "detail", "error_msg", "error_message")
_SPENT = ("insufficient_quota", "billing_hard_limit", "credit balance")
_TOO_LONG = (
    *("context_length", "context length", "context size", "context window", "too long"),
    *("exceed_context", "maximum prompt length", "input is too large", "too many tokens"),
)


def excerpt(text: str, secret: str = "") -> str:
    """Return the start of a text on one line, with printable characters only and without the secret."""
    if secret:
        text = text.replace(secret, "[key]")
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def is_error(value: dict[str, Any]) -> bool:
    """Whether a JSON object reports a failure, in any of the forms that servers are known to use."""
    kinds = value.get("type"), value.get("object"), value.get("finish_reason")
    if value.get("error") or value.get("errors") or "error" in kinds:
        return True
    if _ANSWERS & value.keys() or not str(value.get("type") or "error").lower().endswith("error"):
        return False
    return any(isinstance(value.get(name), str | list) for name in _REASONS)


def error_text(body: str) -> str:
    """Return the error message in a server's answer; the whole body if its shape is not known."""
    try:
        value: Any = parse_json(body)
    except ValueError:
        return body
    return _reason(value) or body


def _reason(value: Any) -> str:
    """Return the first text in the places where servers put a reason; empty if there is none."""
    if isinstance(value, str):
        return value
    found = next(iter(tables(value)), table(value))
    for name in ("error", "errors", *_REASONS):
        if name in found and (reason := _reason(found[name])):
            return reason
    return ""


def _code(value: dict[str, Any]) -> int:
    """Return the HTTP status that an error names by a number or a word; 0 if it names none."""
    error = table(value.get("error")) or value
    for name in ("code", "status", "status_code", "type"):
        code = str(error.get(name) or "").lower()
        if number := int(code) if code.isdecimal() and len(code) == 3 else _CODES.get(code, 0):
            return number
    return 0


class ServerErrorText(Value):
    """Makes the messages about one server; `key` is known only to remove it from them.

    `base` is how its `base_url` usually ends, as a part of a sentence.
    """

    url: str
    model: str = ""
    key: str = ""
    key_env: str = ""
    base: str = "ends in `/v1`"

    @property
    def place(self) -> str:
        """The address without user name and password, in backticks."""
        parts = urlsplit(self.url)
        return f"`{urlunsplit(parts._replace(netloc=parts.netloc.rpartition('@')[2]))}`"

    def status(self, status: int, body: str, retry_after: float | None = None) -> ServerFault:
        """Report an answer that is an HTTP error."""
        reason = excerpt(error_text(body), self.key)
        message = f"{self.place} answered {status}" + (f": {reason}" if reason else "")
        if any(word in body for word in _SPENT):
            hint = "the account has no credit left: top it up or choose a model"
            return ServerFault(message, hint)
        hint = self._hint(status, body)
        if _is_too_long(status, body):
            return ServerFault(message, hint, is_too_long=True)
        brief = _BUSY.get(status, f"server failed ({status})" if status > 505 else "")
        return ServerFault(message, hint, brief=brief, retry_after=retry_after)

    def _hint(self, status: int, body: str) -> str:
        lower = body.lower()
        if _is_too_long(status, body):
            return "the conversation is longer than the model's window: `/compact` shortens it"
        match status:
            case 401 | 403 if self.key_env and self.key:
                known = f"the key in `{self.key_env}` is not accepted"
                return f"{known}: check that it is current; `steersman setup` takes another one"
            case 401 | 403 if self.key_env:
                return f"set `{self.key_env}` in the environment to a key of this server"
            case 401 | 403:
                return "the server wants a key: name its environment variable in `api_key_env`"
            case 404 if "model" in lower:
                known = f"the server does not know the model `{self.model}`"
                return f"{known}: correct `model`, or choose another with `/model`"
            case 404:
                return f"no such path: check `base_url`, it usually {self.base}"
            case 400 | 422:
                return "the server refuses this request: check `model` and `tool_dialect`"
            case 300 | 301 | 302 | 303 | 307 | 308:
                return "the server has moved: correct `base_url`"
            case _:
                return "try again later, or choose another model with `/model` or `--model`"

    def transport(self, error: OSError) -> ServerFault:
        """Report a failed connection, or one that broke before the first byte of an answer."""
        shown = excerpt(str(error) or type(error).__name__, self.key)
        if isinstance(error, ssl.SSLError):
            return ServerFault(
                f"no trusted connection to {self.place}: {shown}",
                "check the certificate, and whether the server speaks `http://` or `https://`",
            )
        if isinstance(error, socket.gaierror):
            return ServerFault(
                f"the name `{urlsplit(self.url).hostname or ''}` of {self.place} cannot be resolved",
                "check `base_url` and the network",
                brief="name not found",
            )
        if isinstance(error, ConnectionRefusedError):
            return ServerFault(
                f"no server listens at {self.place}: connection refused",
                "start the model server, or correct `base_url`",
                brief="connection refused",
            )
        if isinstance(error, ConnectTimeout):
            return ServerFault(
                f"{self.place} does not accept connections: timed out",
                "check `base_url` and the network",
                brief="no connection",
            )
        if isinstance(error, TimeoutError):
            return ServerFault(
                f"{self.place} fell silent: nothing came within the time limit",
                "the server may be overloaded: try again, or choose a smaller model",
                retryable=True,
            )
        return self.broken(shown)

    def broken(self, why: str = "it ended without an answer") -> ServerFault:
        """Report a connection that was lost before the first byte of an answer."""
        return ServerFault(
            f"the connection to {self.place} broke: {why}",
            "check that the server is still running, then try again",
            brief="connection lost",
        )

    def cut(self, came: str, why: ServerFault | None = None) -> ServerFault:
        """Report a stream that ended in the middle; `came` is how much had arrived."""
        reason = f": {why.brief or why.message}" if why else ""
        hint = "the received part is kept: send `continue`, or the message again"
        return BrokenAnswer(
            f"{self.place} stopped in the middle of its answer, after {came}{reason}",
            hint if why is None or why.retryable else why.hint,
            repeats=_REPEATS if why is None or why.brief else int(why.retryable),
            is_too_long=why is not None and why.is_too_long,
        )

    def garbled(self, start: str) -> ServerFault:
        """Report a part of an answer that begins as JSON and is none: what was in it is lost."""
        return ServerFault(
            f"{self.place} sent a part of its answer broken: {excerpt(start, self.key)}",
            "try again; if it comes back, the server or a proxy before it is at fault",
            brief="the answer came broken",
        )

    def nonsense(self, start: str) -> ServerFault:
        """Report an answer that is neither an event stream nor JSON of the right shape."""
        is_page = start.lstrip().startswith("<")
        what = (
            "a web page instead of a model's answer"
            if is_page
            else "something that is no model's answer"
        )
        shown = excerpt(start, self.key) or "(nothing)"
        return ServerFault(
            f"{self.place} sent {what}: {shown}",
            f"check `base_url`: it names the API, and usually {self.base}",
        )

    def reported(self, value: dict[str, Any]) -> ServerFault:
        """Report an error that the server sent with status 200 or in its stream."""
        code, body = _code(value), json.dumps(value, ensure_ascii=False)
        if code in _BUSY or 400 <= code < 500:
            return self.status(code, body)
        return ServerFault(
            f"{self.place} reports an error: {excerpt(error_text(body), self.key)}",
            self._hint(500, body),
            retryable=True,
            is_too_long=_is_too_long(500, body),
        )

    def too_much(self, what: str, limit: int) -> ServerFault:
        """Report an answer, or a part of one, of more bytes than are read."""
        return ServerFault(
            f"{self.place} sent {what} of more than {limit:,} bytes: the call was ended",
            "set `max_tokens` for this model, or choose another model with `/model` or `--model`",
        )

    def refused(self, came: str) -> ServerFault:
        """Report that the model declines to answer or to continue."""
        return ServerFault(
            f"the model at {self.place} refused to answer, after {came}",
            "rephrase the message, or start again with `/new`: a repetition would be refused",
        )

    def empty(self, why: str) -> ServerFault:
        """Report an answer without text and tool calls; `why` is the server's reason to stop."""
        reason = f" (it stopped because of `{excerpt(why, self.key)}`)" if why else ""
        is_cut = why in ("length", "max_tokens")
        return BrokenAnswer(
            f"{self.place} gave an empty answer{reason}",
            "raise `max_tokens`" if is_cut else "ask again",
            repeats=0 if is_cut else 1,
            is_empty=True,
        )


def _is_too_long(status: int, body: str) -> bool:
    lower = body.lower()
    return status == 413 or (status in (400, 500) and any(words in lower for words in _TOO_LONG))
