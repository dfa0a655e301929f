"""Matrix: chat rooms, also encrypted ones; the extra `matrix`, docs/gateways.md."""

from __future__ import annotations

from typing import Any

from ...gateway.chat.bridge import ChatGateway
from ...gateway.chat.platform import Platform


def _make(table: dict[str, Any], rooms: tuple[str, ...]) -> Platform:
    from .link import MatrixSettings
    from .platform import Matrix

    return Matrix(MatrixSettings.model_validate(table), rooms)


matrix = ChatGateway("matrix", _make)
