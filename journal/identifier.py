"""What ids may look like: an allowlist, for names of files and sockets are made from them."""

import re

from ..machines.errors import UsageError

_ALLOWED = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_CLIENT_ID_BYTES = 256


def check_identifier(kind: str, text: str) -> str:
    """Return the id of a session or node unchanged, or raise `UsageError`."""
    if not _ALLOWED.fullmatch(text):
        raise UsageError(
            f"{text[:80]!r} is not a {kind} id",
            "An id has 1 to 64 characters of a-z, 0-9 and `-`, and does not begin with `-`.",
        )
    return text


def check_client_id(text: str) -> str:
    """Return a client's own message id unchanged, or raise `UsageError`; empty means none."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = _CLIENT_ID_BYTES + 1
    if size > _CLIENT_ID_BYTES:
        raise UsageError(
            f"{text[:80]!r} is not a client id",
            f"A client id is text of at most {_CLIENT_ID_BYTES} bytes of UTF-8.",
        )
    return text
