"""The errors that every store raises in the same words."""

from ..machines.errors import MachineError, StoreError, UnknownSession


def unknown_session(session: str) -> UnknownSession:
    """Make the error for an id that no session has."""
    return UnknownSession(
        f"there is no session `{session}`", "`steersman sessions list` shows all."
    )


def session_exists(session: str) -> StoreError:
    """Make the error for an id that is taken."""
    return StoreError(f"session `{session}` exists already", "Choose another id.")


def missing_message(session: str, message: int) -> MachineError:
    """Make the error for a commit that consumes a message which is not there (any more)."""
    return MachineError(f"session `{session}`: message {message} is not in its inbox")
