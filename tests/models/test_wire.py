"""A conversation as bytes: what is kept between calls changes nothing but the time they take."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.model_server import ModelServer, Text

from steersman.journal.log import Log
from steersman.machines.context import tokens_of
from steersman.machines.conversation import ChatMessage, Picture, ToolRequest
from steersman.ports.models.anthropic import TURNS, AnthropicModel, wire_turns
from steersman.ports.models.chat import CHAT, ChatModel, wire_messages
from steersman.ports.models.model import ConversationMemory, ModelRequest
from steersman.ports.models.wire import CHUNK, WireConversation, WireFormat, encode

FORMATS = pytest.mark.parametrize("format", [CHAT, TURNS], ids=["chat", "turns"])
CALLS = (ToolRequest(call="t1.c1", tool="read", arguments={"path": "é\ud800"}),)
SAMPLES = (
    ChatMessage(role="user", text="Hi"),
    ChatMessage(role="user", text='a"b\\ é\ud800'),
    ChatMessage(role="user", text=" "),
    ChatMessage(role="assistant", text=""),
    ChatMessage(role="assistant", text="x" * (CHUNK + 1)),
    ChatMessage(role="assistant", text="", tool_calls=CALLS),
    ChatMessage(role="tool", text="", call="t1.c1"),
    ChatMessage(role="tool", text="[]", call="t1.c2"),
)


def encoded(
    format: WireFormat, messages: Sequence[ChatMessage], memory: ConversationMemory | None = None
) -> WireConversation:
    """Encode, on an idle loop."""
    encoding = encode(format, messages, memory)
    while True:
        try:
            encoding.send(None)
        except StopIteration as ended:
            return ended.value


@FORMATS
@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, len(SAMPLES) - 1), max_size=4), max_size=8), st.booleans())
def test_what_is_kept_gives_the_same_bytes(
    format: WireFormat, added: list[list[int]], is_log: bool
) -> None:
    """However a conversation grows, each request is the one that nothing kept would give."""
    memory, talk = ConversationMemory(), Log[ChatMessage]()
    for numbers in added:
        talk = talk.extended(SAMPLES[number] for number in numbers)
        said = talk if is_log else tuple(talk)
        found, fresh = encoded(format, said, memory), encoded(format, tuple(talk))
        assert b"".join(found.pieces) == b"".join(fresh.pieces)
        assert found.tokens == fresh.tokens == tokens_of(talk)
        objects = [value for _, value in format.objects(talk)]
        assert len(json.loads(b"[" + b"".join(found.pieces) + b"]")) == len(objects)


@FORMATS
def test_another_conversation_is_not_taken_for_the_known_one(format: WireFormat) -> None:
    """After a summary, and in another version of a log, nothing of the old one is sent."""
    memory = ConversationMemory()
    pairs = [
        ChatMessage(role=role, text=f"{role} {number}")
        for number in range(9)
        for role in ("user", "assistant")
    ]
    old = Log(pairs)
    encoded(format, old, memory)
    for other in (
        Log((ChatMessage(role="user", text="a summary"), *old[1:])),
        old.extended([ChatMessage(role="user", text="one")]),
        old.extended([ChatMessage(role="user", text="another")]),
        old[:-3],
        (),
    ):
        found = b"".join(encoded(format, other, memory).pieces)
        assert found == b"".join(encoded(format, other).pieces)


@FORMATS
def test_what_was_encoded_is_not_encoded_again(format: WireFormat) -> None:
    """The next call looks at the new messages only, and sends the same bytes before them."""
    asked: list[int] = []

    def counting(messages: Sequence[ChatMessage]):
        asked.append(len(messages))
        return format.objects(messages)

    counted = WireFormat(objects=counting, open=format.open, finish=format.finish)
    talk = Log(
        ChatMessage(role="assistant" if number % 2 else "user", text="x" * 2000)
        for number in range(1000)
    )
    memory = ConversationMemory()
    before = encoded(counted, talk, memory).pieces
    assert sum(map(len, before)) > 3 * CHUNK
    said = ChatMessage(role="user", text="and now?")
    after = encoded(counted, talk.extended([said]), memory).pieces
    assert asked[0] == 1000
    assert asked[1] <= 1 + format.open
    assert all(one is other for one, other in zip(before[:-1], after, strict=False))


@FORMATS
async def test_the_loop_is_not_held_up_by_a_long_conversation(format: WireFormat) -> None:
    """While megabytes are encoded for the first time, the loop has its turn again and again."""
    talk = tuple(
        ChatMessage(role="assistant" if number % 2 else "user", text="x" * 10_000)
        for number in range(400)
    )
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await encode(format, talk, None)
    counting.cancel()
    assert turns >= 25


@pytest.mark.parametrize("kind", [ChatModel, AnthropicModel])
def test_a_long_conversation_arrives_whole(kind, asker) -> None:
    """A server gets what is sent in pieces as one body, and each body begins like the one before."""
    talk = Log(
        ChatMessage(role="assistant" if number % 2 else "user", text=f"{number} " + "é" * 4000)
        for number in range(300)
    )
    more = talk.extended([ChatMessage(role="user", text="and now?")])
    memory = ConversationMemory()
    requests = [
        ModelRequest(system="Be brief.", messages=messages, memory=memory)
        for messages in (talk, more)
    ]
    with ModelServer([Text("Hello.")]) as server:
        answers = asker(kind(server.base_url, "m"), *requests)
        first, second = (recorded.body for recorded in server.requests)
    assert [answer.text for answer in answers] == ["Hello."] * 2
    assert len(json.dumps(first, ensure_ascii=False).encode()) > 4 * CHUNK
    system = kind is ChatModel
    assert len(first["messages"]) == 300 + system
    assert len(second["messages"]) == 301 + system
    assert second["messages"][:290] == first["messages"][:290]
    assert "0 é" in json.dumps(second["messages"][int(system)], ensure_ascii=False)


def test_pictures_of_tools_follow_the_results_or_are_named() -> None:
    """Inside of the result or behind all results, as a format has it; a model of text gets a line."""
    shown = Picture(media_type="image/png", data="iVBORw0KGgo=")
    calls = tuple(ToolRequest(call=name, tool="look") for name in ("a", "b"))
    conversation = [
        ChatMessage(role="user", text="look"),
        ChatMessage(role="assistant", text="", tool_calls=calls),
        ChatMessage(role="tool", text="[a picture]", call="a", pictures=(shown,)),
        ChatMessage(role="tool", text="nothing", call="b"),
        ChatMessage(role="assistant", text="I see."),
    ]
    for end in (4, 5):
        chat = [value for _, value in wire_messages(conversation[:end])]
        assert [value["role"] for value in chat][2:5] == ["tool", "tool", "user"]
        assert chat[4]["content"][0]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
        assert sum(covered for covered, _ in wire_messages(conversation[:end])) == end
    turns = [turn for _, turn in wire_turns(conversation)]
    kinds = [part["type"] for part in turns[2]["content"][0]["content"]]
    assert kinds == ["text", "image"]
    for format in (CHAT, TURNS):
        text = replace(format, takes_pictures=False)
        written = b"".join(encoded(text, conversation).pieces).decode()
        assert "iVBORw0KGgo" not in written
        assert written.count("Its pictures are not shown") == 1
