"""How other programs reach the sessions of a host: by its control socket, and by their mailboxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..control import ControlServer
from ..mail_reader import MailReader

if TYPE_CHECKING:
    from .host import Host


class Endpoint:
    """That of one host; `mail` reads the mailboxes.

    `opening` opens a session for another program, where this one does that; it gets the parameters of
    `begin`. `evicting` gives a session back, in a node. `woken` is called when mail has come, also for
    sessions that no process owns.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._control: ControlServer | None = None
        self.mail = MailReader(host)
        self.opening: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.evicting: Callable[[str], None] | None = None
        self.woken: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Open the control socket; a failure becomes a notice, and the session works without it."""
        if self._control is not None:
            return
        control = ControlServer(self._host)
        try:
            self._host.runtime.run(control.start())
        except OSError as error:
            self._host.notices.append(f"other terminals cannot reach this session: {error}")
        self._control = control
        self.mail.start()

    def is_followed(self, session: str) -> bool:
        """Whether another program follows a session of this one."""
        return self._control is not None and self._control.is_followed(session)

    def close(self) -> None:
        """Take nothing more in. Idempotent."""
        if self._control is not None:
            control, self._control = self._control, None
            self._host.runtime.run(control.aclose())
        self.mail.close()
