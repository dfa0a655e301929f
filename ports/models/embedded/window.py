"""Requests for a small window: the newest messages that fit."""

from msgspec.structs import replace

from ....machines.conversation import ChatMessage
from ..model import ModelRequest
from ..wire import without_pictures

_CHARACTERS = 3  # of a token, on the safe side: English has four, code three
_LEFT_OUT = "\n[… {} characters left out …]\n"


def fit(request: ModelRequest, window: int) -> ModelRequest:
    """Return the request with its instructions and as many of the newest messages as fit `window`.

    `window` is in tokens. The first message kept is a user message; a single message that is too long
    keeps its head and its tail.
    """
    answer = request.max_tokens or window // 4
    room = max(600, (window - answer) * _CHARACTERS - len(request.system))
    kept: list[ChatMessage] = []
    for message in reversed(list(without_pictures(request.messages))):
        if kept and len(message.text) > room:
            break
        kept.append(_shortened(message, room))
        room -= len(kept[-1].text) + 4 * _CHARACTERS
    kept.reverse()
    while len(kept) > 1 and kept[0].role != "user":
        del kept[0]
    return replace(request, messages=tuple(kept))


def _shortened(message: ChatMessage, room: int) -> ChatMessage:
    text = message.text
    if len(text) <= room:
        return message
    half = max(1, (room - len(_LEFT_OUT) - 8) // 2)
    left_out = _LEFT_OUT.format(len(text) - 2 * half)
    return replace(message, text=text[:half] + left_out + text[-half:])
