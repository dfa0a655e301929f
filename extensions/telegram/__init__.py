"""Telegram: chat rooms as groups and private chats; the extra `telegram`, docs/gateways.md."""

from __future__ import annotations

from typing import Any

from ...gateway.chat.bridge import ChatGateway
from ...gateway.chat.platform import Platform


def _make(table: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from .client import TelegramSettings
    from .platform import Telegram

    return Telegram(TelegramSettings.model_validate(table), rooms)


telegram = ChatGateway("telegram", _make)
