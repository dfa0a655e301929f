"""A model that says the same over and over is noticed; text that only looks so is not."""

import random

import pytest
from models.conftest import Asker, Printing

from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema
from steersman.ports.models.blocks import TOOLS, BlocksDialect
from steersman.ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from steersman.ports.models.repetition import (
    NOTICE,
    RepetitionGuard,
    UnrepeatedModel,
    is_repetition,
)

LISTING = "README.md\nsrc/main.py\nsrc/other.py\ntests/test_main.py\n"


def loops(text: str, size: int = 7) -> bool:
    """Feed a text in pieces of a size; whether a loop is found."""
    guard = RepetitionGuard()
    return any(guard.feed(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize(
    "piece",
    [LISTING, "python -m unittest.online.run ", "I can help you with that. What is it?\n\n", "na "],
)
@pytest.mark.parametrize("size", [1, 7, 400])
def test_a_loop_is_found_behind_any_beginning(piece: str, size: int) -> None:
    """Lines, a sentence without an end of line, two letters; in pieces of any size."""
    assert loops("Here it is:\n" + piece * (4_000 // len(piece)), size)


ROWS = "".join(f"| {n} | ok |\n" for n in range(400))
CODE = "".join(f"    if value == {n}:\n        return {n * n}\n" for n in range(200))
NOISE = "".join(random.Random(1).choices("abcdef \n", k=8_000))


@pytest.mark.parametrize("text", [ROWS, CODE, NOISE, "=" * 200 + "\n", LISTING * 3, " " * 5_000])
def test_what_only_looks_like_a_loop_is_left_alone(text: str) -> None:
    """Tables, code, noise, a ruler, three times the same, and blanks."""
    assert not loops(text)


def is_looping(text: str) -> bool:
    """Say by definition whether a text ends with repetitions, whatever that takes."""

    def repeats(end: str, period: int) -> bool:
        return end[period:] == end[:-period]

    for period in range(1, len(text) // 5 + 1):
        end = text[-2_000 if period < 20 else -max(500, 5 * period) :]
        if len(end) < (2_000 if period < 20 else max(500, 5 * period)) or not repeats(end, period):
            continue
        if end.strip() if period < 20 else not any(repeats(end, part) for part in range(1, 20)):
            return True
    return False


def test_the_verdict_is_that_of_the_definition() -> None:
    """Pieces that consist of smaller ones, of many lengths, whole and with a fault in them."""
    dice, found = random.Random(3), [0, 0]
    for _ in range(1_000):
        begin = dice.choice(["a", " ", "ab", "a " * 5, "abc\n"]) * dice.randint(0, 120)
        piece = (
            begin + "".join(dice.choices("ab ", k=dice.randint(0, 30))) + dice.choice(["", "xy "])
        )
        piece = piece[-dice.choice([5, 19, 20, 21, 99, 101, 250, 600, 700]) :] or "a"
        text = (piece * 3_000)[-dice.choice([300, 499, 500, 600, 1_999, 2_000, 2_500, 3_000]) :]
        if dice.random() < 0.3:
            at = dice.randrange(len(text))
            text = text[:at] + "#" + text[at + 1 :]
        verdict = is_repetition(text)
        assert verdict == is_looping(text), text
        found[verdict] += 1
    assert min(found) > 200


class Streaming(Printing):
    """Says its answers in pieces."""

    size = 7

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Say the next one."""
        answer = await super().answer(request, listener)
        for at in range(0, len(answer.text), self.size):
            listener.on_text(answer.text[at : at + self.size])
        return answer


@pytest.mark.parametrize("size", [7, 10_000])
def test_what_was_said_before_a_loop_is_the_answer(asker: Asker, size: int) -> None:
    """It is what was heard, also in one piece; the next answer is heard as usual."""
    inner = Streaming("Files:\n" + LISTING * 90, "Done.")
    inner.size = size
    looped, done = asker(UnrepeatedModel(inner), "list them", "go on")
    assert looped.text.startswith(f"Files:\n{LISTING}")
    assert size > len(LISTING) or len(looped.text) < 30 * len(LISTING)
    assert (looped.stop_reason, done.text, asker.notices) == ("length", "Done.", [NOTICE])
    assert "".join(asker.pieces) == f"{looped.text}Done."


def test_a_small_model_is_taken_at_what_it_said_before_a_loop(asker: Asker) -> None:
    """The files that it has printed are written."""
    block = "b.txt\n```\none\n```\n\nc.txt\n```\ntwo\n```\n\n"
    request = ModelRequest(
        system="",
        messages=(
            ChatMessage(role="user", text="write b.txt and c.txt"),
            ChatMessage(
                role="assistant",
                text="",
                tool_calls=(ToolRequest(call="c1", tool="survey", arguments={}),),
            ),
            ChatMessage(role="tool", text="a.txt\n```\n0\n```", call="c1"),
        ),
        tools=tuple(ToolSchema(name=name, description="", parameters={}) for name in TOOLS),
    )
    (answer,) = asker(BlocksDialect(UnrepeatedModel(Streaming(block * 60))), request)
    assert {call.arguments["path"] for call in answer.tool_calls} == {"b.txt", "c.txt"}
