"""What is told of the files that a message brought along."""

from typing import Any

from ...machines.attachment import Attachment, told

__all__ = ["attachment_events"]


def attachment_events(attached: tuple[Attachment, ...]) -> list[dict[str, Any]]:
    """Return a notice of what was attached and what was not; nothing where nothing was named."""
    return [{"type": "notice", "text": told(attached)}] if attached else []
