"""A configuration of an agent that is not understood: told with its place, and left alone."""

from ...machines.errors import ConfigError

__all__ = ["NotUnderstood"]


class NotUnderstood(ConfigError):
    """A file holds what an edit would have to guess about; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str = "", at: int = 0) -> None:
        hint = "nothing was changed; change it there, or add the hooks by hand (docs/hooks.md)"
        super().__init__(message, hint)
        if text:
            self.line = text.count("\n", 0, at) + 1
            self.column = at - (text.rfind("\n", 0, at) + 1) + 1
