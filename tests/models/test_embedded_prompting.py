"""What a very small model is offered, and how its conversation is made small."""

import pytest

from steersman.machines.conversation import ChatMessage, ToolRequest, ToolSchema
from steersman.ports.models.embedded.prompting import fit, offer_tools, paths_in, retell
from steersman.ports.models.model import ModelRequest

NAMES = {
    "read": ["path"],
    "write": ["path", "content"],
    "edit": ["path", "old", "new"],
    "list": [],
    "search": ["pattern"],
    "shell": ["command"],
    "delegate": ["task"],
    "progress": ["done", "total"],
    "defer": ["why"],
}
TOOLS = tuple(
    ToolSchema(
        name=name,
        description="…",
        parameters={
            "type": "object",
            "properties": {n: {"type": "string"} for n in need},
            "required": need,
        },
    )
    for name, need in NAMES.items()
)


def offered(*messages: ChatMessage):
    """The tools on offer as (name, properties), and whether one must be used."""
    offer = offer_tools(ModelRequest(system="", messages=messages, tools=TOOLS))
    return [(tool.name, tool.parameters["properties"]) for tool in offer.tools], offer.must_act


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "Hi, who are you?",
        "What is the capital of France?",
        "thanks!",
        "write a haiku about the sea",
        "explain what a file is",
        "I read a book, e.g. a novel, at 3.14 p.m.",
        "see https://example.org/a.html please",
        "what do you think of yes and/or no?",
        "stop",
    ],
)
def test_talk_is_offered_no_tools(text):
    """A message that asks for no file, folder or command gets a plain answer."""
    assert offered(ChatMessage(role="user", text=text)) == ([], False)


@pytest.mark.parametrize(
    ("text", "tool", "properties"),
    [
        ("read notes.txt and tell me what it says", "read", {"path": {"enum": ["notes.txt"]}}),
        ("What is in README.md?", "read", {"path": {"enum": ["README.md"]}}),
        ("show me src/app/main.py.", "read", {"path": {"enum": ["src/app/main.py"]}}),
        (
            "[New message from USER] also read README.md",
            "read",
            {"path": {"enum": ["README.md"]}},
        ),
        ("list the files here", "list", {"path": {"enum": ["."]}}),
        ("what files are in src/app?", "list", {"path": {"enum": ["src/app"]}}),
        (
            "write 'hello' to out.txt",
            "write",
            {"path": {"enum": ["out.txt"]}, "content": {"enum": ["hello"]}},
        ),
        (
            "create a file out.txt",
            "write",
            {"path": {"enum": ["out.txt"]}, "content": {"type": "string"}},
        ),
        ("run `ls -la`", "shell", {"command": {"enum": ["ls -la"]}}),
        ("please run git status", "shell", {"command": {"enum": ["git status"]}}),
        ("search for steer in the code", "search", {"pattern": {"enum": ["steer"]}}),
    ],
)
def test_evident_wishes_get_exactly_their_tool(text, tool, properties):
    """An evident wish narrows the offer to one tool with the message's own words."""
    assert offered(ChatMessage(role="user", text=text)) == ([(tool, properties)], True)


def test_named_tool_is_offered_but_not_forced():
    """A tool whose uncommon name is said may be used."""
    assert offered(ChatMessage(role="user", text="delegate the docs to someone")) == (
        [("delegate", {"task": {"type": "string"}})],
        False,
    )


def turn_of(text: str, *paths: str) -> tuple[ChatMessage, ...]:
    """A turn that has read these files."""
    calls = [
        ToolRequest(call=f"c{n}", tool="read", arguments={"path": path})
        for n, path in enumerate(paths)
    ]
    steps = [
        (
            ChatMessage(role="assistant", text="", tool_calls=(call,)),
            ChatMessage(role="tool", text="content", call=call.call),
        )
        for call in calls
    ]
    return (ChatMessage(role="user", text=text), *(one for step in steps for one in step))


def test_after_the_result_it_answers():
    """When the wish is done, no tool is offered; a second file of the same message still is."""
    both = "read a.txt and b.txt"
    assert offered(*turn_of(both)) == ([("read", {"path": {"enum": ["a.txt"]}})], True)
    assert offered(*turn_of(both, "a.txt")) == ([("read", {"path": {"enum": ["b.txt"]}})], True)
    assert offered(*turn_of(both, "a.txt", "b.txt")) == ([], False)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("./a.py, ../b/c.txt and ~/x.md", ("./a.py", "../b/c.txt", "~/x.md")),
        ("the README and Makefile", ("README", "Makefile")),
        ("a.txt a.txt", ("a.txt",)),
        ("version 3.11 costs 4.50", ()),
        ("mail me at a@b.org", ()),
        ("call f.read() now", ()),
    ],
)
def test_words_that_look_like_paths(text, paths):
    """Paths are found, addresses, numbers and calls are not."""
    assert paths_in(text) == paths


def test_result_is_retold_with_the_question():
    """The newest result and the question come last, and the answer is begun for the model."""
    told = retell(turn_of("read a.txt", "a.txt"))
    assert [one.role for one in told] == ["user", "assistant", "user", "assistant"]
    assert told[2].text == "The file a.txt says:\ncontent\nread a.txt"
    assert told[3].text == "The file a.txt says:\n"


def test_other_conversations_are_not_retold():
    """Without a fresh result nothing is rewritten."""
    talk = (
        ChatMessage(role="user", text="hi"),
        ChatMessage(role="assistant", text="hello"),
        ChatMessage(role="user", text="x"),
    )
    assert retell(talk) is talk


def test_newest_messages_fit_the_window():
    """Old messages go, the newest stays, and the first that is kept is a user message."""
    talk = tuple(
        ChatMessage(role="user" if number % 2 == 0 else "assistant", text=f"{number} " + "x" * 300)
        for number in range(41)
    )
    kept = fit(ModelRequest(system="system", messages=talk, max_tokens=300), 1000).messages
    assert kept == talk[-len(kept) :]
    assert kept[0].role == "user"
    assert sum(len(one.text) for one in kept) < (1000 - 300) * 3


def test_long_message_keeps_head_and_tail():
    """A message that is too long alone is cut in the middle, and says so."""
    message = ChatMessage(role="user", text="begin " + "x" * 100_000 + " end")
    [kept] = fit(ModelRequest(system="", messages=(message,), max_tokens=300), 1000).messages
    assert kept.text.startswith("begin ")
    assert kept.text.endswith(" end")
    assert "characters left out" in kept.text
    assert len(kept.text) <= 2100
