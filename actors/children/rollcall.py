"""Who has still to answer: cancels that wait for several children, and the parent's last question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...journal import entries as e
from ...machines.delegation import ChildReport
from ...machines.orders import InterruptTurn
from ..turns.entry import requested

__all__ = ["Awaited", "RollCall"]


@dataclass(slots=True)
class Awaited:
    """The children that one cancel reached and that are not dead yet, and the pids of the rest."""

    names: set[str]
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


@dataclass(slots=True)
class RollCall:
    """Cancels with no turn that would answer them. `is_asked`: the parent waits for a last word.

    `is_ending`: the parent is being left, or ends; nobody begins any more.
    """

    is_asked: bool = False
    is_ending: bool = False
    _awaited: list[Awaited] = field(default_factory=list[Awaited])

    def expect(self, order: InterruptTurn, names: list[str]) -> e.InterruptRequested:
        """Begin to wait for these, and return the order's receipt."""
        self._awaited.append(Awaited(set(names)))
        return requested("", order)

    def answer(self, name: str, report: ChildReport | None) -> Iterator[e.Stopped]:
        """Note that one is dead; give the end of each cancel that has nobody left to wait for."""
        for one in list(self._awaited):
            if name in one.names:
                one.names.discard(name)
                if report is not None:
                    one.killed += report.killed
                    one.survivors += report.survivors
            if not one.names:
                self._awaited.remove(one)
                yield e.Stopped("", one.killed, one.survivors)
