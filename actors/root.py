"""The root of the actor tree: supervisor of all sessions of a program."""

from typing import Any

from .supervisor import ChildSpec, Supervisor

__all__ = ["Root"]


class Root(Supervisor):
    """The root of the tree: one session's failure never reaches another."""

    strategy = "one_for_one"

    def on_receive(self, message: Any) -> Any:
        """Start sessions, and restart those that fail, from the journal."""
        match message:
            case ChildSpec():
                return self.start_child(message)
            case _:
                self.handle_down(message)
                return None
