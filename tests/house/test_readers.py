"""No reader or drawer of text from outside takes a time that grows faster than the text."""

import random
from collections.abc import Callable

import pytest
from support.cost import grows_linearly, repeated

from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.markdown import Stream
from steersman.cli.screen.transcript import unfolded_rows
from steersman.cli.wrapping import fitted, wrapped
from steersman.extensions.telegram.text import compose
from steersman.gateway.commands.conversation import code_blocks
from steersman.gateway.events.contract import ToolCallView
from steersman.gateway.wording.redaction import Redactor
from steersman.gateway.wording.terminal import audited, clean, exposed, removed
from steersman.machines.classification import Keywords, classify
from steersman.machines.verdict import read_verdict
from steersman.ports.models.error_text import error_text
from steersman.ports.models.reply import parse_arguments
from steersman.ports.models.said_calls import SayStream, calls_in, parse_action
from steersman.ports.tools.command_line import read_line
from steersman.ports.tools.shell_rule import suspects
from steersman.workflows.document import diagnose, parse_document
from steersman.workflows.problem import Problem

PIECES = (
    *("a", "é", " ", "\n", "\n\n", "\t", "0", "\0", "\x1b[", "\x1b]", "\u200b", "\u0301", "日"),
    *(
        "`",
        "```",
        "```\n",
        "~~~\n",
        "*",
        "**",
        "_",
        "- ",
        "1. ",
        "> ",
        "# ",
        "|",
        "|-",
        "|-|\n",
        "---",
    ),
    *(
        "[",
        "](",
        ")",
        "http://a",
        "<",
        ">",
        "<function=a>",
        "<parameter=b>",
        "'",
        '"',
        "\\",
        "{",
        "}",
    ),
    *(
        '{"a":',
        '{"tool": "read"',
        "[{",
        "]",
        ",",
        "=",
        "a = 1",
        "[a]",
        "a.b",
        "token=",
        "password: ",
        "x" * 300,
    ),
    *(
        "stop",
        "stop, ",
        "no ",
        "$",
        "${",
        "(",
        "&",
        ";",
        "@",
        ":",
        "/",
        "-----BEGIN ",
        "sk-",
        "://",
    ),
)
RANDOM = random.Random(7)  # the same texts each time
TEXTS = [repeated("", piece, "") for piece in PIECES]
TEXTS += [
    repeated("", "".join(RANDOM.choices(PIECES, k=RANDOM.randint(2, 5))), "x") for _ in range(60)
]
LOOK = Appearance()
CALL = ToolCallView(call="t1.s1.c1", tool="shell", arguments={})


def streamed(text: str) -> None:
    """Draw an answer as it comes, in pieces."""
    stream = Stream(LOOK)
    for at in range(0, len(text), 400):
        stream.feed(text[at : at + 400], 80)
    stream.finish(80)


def whole(text: str) -> None:
    """Draw an answer that comes at once."""
    stream = Stream(LOOK)
    stream.feed(text, 80)
    stream.finish(80)


def said(text: str) -> None:
    """Read an answer in the JSON dialect as it comes."""
    stream = SayStream(lambda piece: None)
    for at in range(0, len(text), 400):
        stream.feed(text[at : at + 400])
    stream.finish(text)


def diagnosed(text: str) -> None:
    """Parse a document, and find the place of a problem in it."""
    document, faults = parse_document("a.toml", text.encode("utf-8", "replace"))
    if not faults:
        diagnose(document, [Problem(where=("a",), message="wrong")])


READERS: dict[str, Callable[[str], object]] = {
    "redaction": Redactor({"A_TOKEN": "a" * 20 + "b"}).text,
    "clean": clean,
    "audited": audited,
    "exposed": exposed,
    "removed": removed,
    "classification": lambda text: classify(text, Keywords()),
    "wrapping": lambda text: wrapped(text, 80),
    "fitting": lambda text: fitted(text, 80),
    "markdown, streamed": streamed,
    "markdown, at once": whole,
    "output": lambda text: unfolded_rows(CALL, text, len(text), 80, LOOK),
    "code blocks": code_blocks,
    "telegram": lambda text: compose(text, is_markdown=True),
    "verdict": read_verdict,
    "action": parse_action,
    "action, streamed": said,
    "arguments": parse_arguments,
    "said calls": lambda text: calls_in(text, ["a", "read"]),
    "error": error_text,
    "command line": read_line,
    "command that a rule forbids": suspects.__wrapped__,
    "document": diagnosed,
}


@pytest.mark.nightly
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_is_linear(reader: str) -> None:
    """Each text, of the same piece again and again, costs it no more a character."""
    read = READERS[reader]
    slow = [text.__name__ for text in TEXTS if not grows_linearly(read, text)]
    assert not slow
