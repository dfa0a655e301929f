"""What an editor's prompt says, as the text that an agent reads."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

__all__ = ["Block", "prompt_text"]

Block = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


def prompt_text(blocks: Iterable[Block]) -> str:
    """Write the blocks of a prompt as one text, in order; what is embedded stands behind it."""
    said: list[str] = []
    embedded: list[str] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                said.append(block.text)
            case ResourceContentBlock():
                said.append(f"`{_place(block.uri)}`")
            case EmbeddedResourceContentBlock():
                place = _place(block.resource.uri)
                said.append(f"`{place}`")
                embedded.append(_embedded(place, block))
            case ImageContentBlock() | AudioContentBlock():
                said.append(f"[{block.type} left out: this agent reads text]")
    return "\n\n".join(["".join(said), *embedded]).strip()


def _embedded(place: str, block: EmbeddedResourceContentBlock) -> str:
    held = block.resource
    if isinstance(held, TextResourceContents):
        return f"`{place}` holds:\n```\n{held.text}\n```"
    return f"[`{place}` is no text, and is left out]"


def _place(uri: str) -> str:
    """Return the path of a file's URI; any other URI as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
