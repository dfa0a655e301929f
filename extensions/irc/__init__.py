"""IRC: chat rooms as channels; the extra `irc`, docs/gateways.md."""

from __future__ import annotations

from typing import Any

from ...gateway.chat.bridge import ChatGateway
from ...gateway.chat.platform import Platform


def _make(table: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from .connection import IrcSettings
    from .platform import Irc

    return Irc(IrcSettings.model_validate(table), rooms)


irc = ChatGateway("irc", _make)
