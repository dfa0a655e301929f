"""`/copy`: the last answer, or one of its code blocks, for the clipboard of the terminal."""

from __future__ import annotations

import re
from typing import Annotated

from ...machines.pattern import lazy_pattern
from ..client import SessionClient
from ..wording.formats import size_text
from ..wording.terminal import clean
from .command import Argument, Reply, command

_BLOCK = lazy_pattern(
    r"^( {0,3})(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\2[`~]*[ \t]*$|\Z)", re.DOTALL | re.M
)


@command("copy", "session", "Copy the last answer, or its N-th code block, to the clipboard.")
def copy(client: SessionClient, number: Annotated[int, Argument("N")] = 0) -> Reply:
    """Return the text; the terminal that asked copies it."""
    said = (message for message in client.view.newest_messages() if message.role == "assistant")
    answer = next((message.text for message in said if message.text.strip()), "")
    if not answer:
        return Reply(ok=False, text="There is no answer yet.")
    what, text = "the last answer", answer
    if number:
        blocks = code_blocks(answer)
        if not 0 < number <= len(blocks):
            return Reply(ok=False, text=f"The last answer has {len(blocks)} code blocks.")
        what, text = f"code block {number} of the last answer", blocks[number - 1]
    text = clean(text)
    data = {"text": text, "what": what}
    size = size_text(len(text.encode()))
    return Reply(data=data, text=f"{what[:1].upper()}{what[1:]}, {size}")


def code_blocks(text: str) -> list[str]:
    """Return what is between the fences of a Markdown text, in order."""
    return [found[3] for found in _BLOCK.finditer(text)]
