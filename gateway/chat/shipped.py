"""The gateways of this package; what each needs is an extra of its name, imported when it is used."""

from __future__ import annotations

from typing import Any

from .bridge import ChatGateway
from .platform import Platform


def _irc(settings: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from ...extensions.irc.platform import Irc
    from ...extensions.irc.settings import IrcSettings

    return Irc(IrcSettings.model_validate(settings), rooms)


def _matrix(settings: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from ...extensions.matrix.platform import Matrix
    from ...extensions.matrix.settings import MatrixSettings

    return Matrix(MatrixSettings.model_validate(settings), rooms)


def _telegram(settings: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from ...extensions.telegram.platform import Telegram
    from ...extensions.telegram.settings import TelegramSettings

    return Telegram(TelegramSettings.model_validate(settings), rooms)


irc = ChatGateway("irc", _irc)
matrix = ChatGateway("matrix", _matrix)
telegram = ChatGateway("telegram", _telegram)
