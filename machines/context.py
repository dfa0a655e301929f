"""How full a model's window is, and what can be spared of a conversation that no longer fits.

The server, which has the tokenizer, counts tokens; between two answers they are estimated,
four characters each. Pure.
"""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from .conversation import ChatMessage
from .value import Value

CHARACTERS = 4  # of a token: English prose has more, code fewer
PICTURE = 1_500  # tokens of a picture: APIs count about that for one that fills a screen
EACH = 4  # tokens around every message
LEFT_OUT = "[left out to make room: {} characters of this result{}]"
_PLACE, _PLACE_END = "; whole output in ", ": `read` it"
_GAP = "[… {} left out{}]"
SHORTENED = "\n[… left out to make room: {} characters …]\n"
KEPT = 2_000  # characters of the newest results that stay in any case
SPARED = 400  # characters; a shorter result is not worth leaving out


class Fill(Value):
    """A server's count: `tokens` for the first `messages` of the conversation; 0: nothing yet."""

    tokens: int = 0
    messages: int = 0


def ends_of(text: str, most: int, place: str = "") -> str:
    """Return a text, or the first and last lines of one longer than `most` characters.

    `place` is the file with all of it, or empty.
    """
    if len(text) <= most:
        return text
    half = most // 2
    head, tail = text[:half], text[len(text) - half :]
    head = head[: head.rfind("\n") + 1 or half]
    tail = tail[tail.find("\n") + 1 if "\n" in tail[:-1] else 0 :]
    missing = f"{len(text) - len(head) - len(tail):,} characters"
    return gap_between(head, tail, missing, place)


def gap_between(head: str, tail: str, missing: str, place: str = "") -> str:
    """Join the ends of a text; `missing` is what lies between, in words, `place` the file with all."""
    line = head.count("\n") + 1
    where = f"{_PLACE}{place}{_PLACE_END} with `offset` {line}, or `search` it"
    gap = _GAP.format(missing, where if place else "")
    return f"{head.rstrip()}\n{gap}\n{tail.lstrip()}"


def tokens_of(messages: Sequence[ChatMessage]) -> int:
    """Estimate what messages take of a window, in tokens."""
    return sum(EACH + _characters(message) // CHARACTERS for message in messages)


def _characters(message: ChatMessage) -> int:
    calls = sum(len(call.tool) + len(json.dumps(call.arguments)) for call in message.tool_calls)
    return len(message.text) + calls + PICTURE * CHARACTERS * len(message.pictures)


def filled(fill: Fill, conversation: Sequence[ChatMessage], overhead: int = 0) -> int:
    """Say how many tokens a call with this conversation takes; `overhead` are instructions and tools."""
    if 0 < fill.messages <= len(conversation):
        return fill.tokens + tokens_of(conversation[fill.messages :])
    return overhead + tokens_of(conversation)


def cut_points(conversation: Sequence[ChatMessage], is_amid: bool = False) -> list[int]:
    """List where a conversation can be cut so that what is kept begins whole.

    That is where a person speaks; `is_amid` a turn: also where the model asks for tools.
    """
    found: list[int] = []
    for index, message in enumerate(conversation[1:], 1):
        is_question = message.role == "user" and conversation[index - 1].role == "assistant"
        is_step = is_amid and message.role == "assistant"
        if is_question or is_step:
            found.append(index)
    return found


def older(conversation: Sequence[ChatMessage], keep: int, is_amid: bool = False) -> int:
    """Say how many of the oldest messages to sum up, so that those kept take `keep` tokens or less.

    The newest part is kept however long it is. 0: there is nothing older.
    """
    points = cut_points(conversation, is_amid)
    for point in points:
        if tokens_of(conversation[point:]) <= keep:
            return point
    return points[-1] if points else 0


def pruned(
    conversation: Sequence[ChatMessage], tokens: int, spare: int = 2
) -> tuple[list[ChatMessage], int]:
    """Leave out the oldest results of tools until so many tokens are won.

    The newest ones are spared, and only shortened if that is not enough. Returns the messages up to
    the last that changed, and how many results were left out or shortened.
    """
    results = [index for index, message in enumerate(conversation) if message.role == "tool"]
    changed = list(conversation)
    wanted = tokens * CHARACTERS
    last = count = 0
    newest = max(0, len(results) - spare)
    for place, index in enumerate(results):
        text = changed[index].text
        if wanted <= 0:
            break
        if len(text) <= (SPARED if place < newest else KEPT):
            continue
        less = _left_out(text) if place < newest else _shortened(text, wanted)
        changed[index] = replace(changed[index], text=less)
        wanted -= len(text) - len(less)
        last, count = index + 1, count + 1
    return changed[:last], count


def _left_out(text: str) -> str:
    """Say that a result is left out, and which file still has all of it."""
    before, is_there, _ = text.partition(_PLACE_END)
    _, mark, place = before.rpartition(_PLACE) if is_there else ("", "", "")
    return LEFT_OUT.format(len(text), mark + place if "\n" not in place else "")


def _shortened(text: str, wanted: int) -> str:
    """Take so many characters out of the middle of a text, or as many as may go."""
    half = max(KEPT, len(text) - wanted - 2 * len(SHORTENED)) // 2
    return f"{text[:half]}{SHORTENED.format(len(text) - 2 * half)}{text[-half:]}"
