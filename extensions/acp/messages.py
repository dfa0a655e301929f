"""What an editor has sent: by which id it knows a message, and what the message says until it is read."""

from __future__ import annotations

from collections.abc import Iterable

from ...journal.queue_record import ItemRecord


class SentMessages:
    """The messages of one session, from their receipt until they are in the conversation."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._became: dict[str, str] = {}

    def first(self, item: str) -> str:
        """Return the id by which the editor knows a message: one that was handed back keeps it."""
        return next((first for first, now in self._became.items() if now == item), item)

    def now(self, item: str) -> str:
        """Return the id that a message has in the queue now."""
        return self._became.get(item, item)

    def note(self, key: str, text: str) -> None:
        """Note what the editor sends under a key."""
        self._sent[key] = text

    def refuse(self, key: str | None) -> None:
        """Forget what was sent under a key."""
        self._sent.pop(key or "", None)

    def accept(self, item: str, key: str | None, text: str) -> bool:
        """Note that a message has an id; return whether this editor has sent it."""
        is_own = key in self._sent
        self._texts[item] = self._sent.pop(key or "", text)
        return is_own

    def reword(self, item: str, text: str) -> None:
        """Note that a message that waits was changed."""
        self._texts[item] = text

    def hand_back(self, item: str, new: str) -> None:
        """Note that a message waits as another one now."""
        if item != new:
            self._became[self.first(item)] = new

    def know(self, items: Iterable[ItemRecord]) -> None:
        """Note the messages that wait in a session that is opened again."""
        self._texts |= {item.id: item.text for item in items}

    def read(self, item: str) -> tuple[str, str]:
        """Return the id and the text of a message that is read now; no text if nobody sent it."""
        name = self.first(item)
        return name, self._texts.pop(name, "")
