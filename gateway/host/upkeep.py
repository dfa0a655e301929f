"""What a home keeps beside its journal, and throws away in time: saved queues, copies, the trash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from ...machines.errors import ConfigError, SteersmanError
from ...ports.process.leftover import orphaned_commands
from ...workspace.prune import size_of
from ..home.retention import Retention, Swept
from ..home.trash import Trash
from ..views.saved_queues import SavedQueues
from ..wording.acknowledgement import path_names
from ..wording.formats import size_text

if TYPE_CHECKING:
    from .host import Host

NAMED = 5
"""Sessions that a message names; of the others it gives the number."""


class Upkeep:
    """That of the home in which a host has sessions."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.trash = Trash(host.paths.state)
        self.saved_queues = SavedQueues(host, self.trash)
        self.has_begun = False
        self._thread: Thread | None = None
        self._is_closing = False

    def begin(self) -> Iterator[str]:
        """Throw away what was outlived, and yield what there is to say of it and of what was left."""
        now, paths = time.time(), self._host.paths
        hours = self._host.config.auto_queue.persistence.retention_hours
        yield from self.saved_queues.expire(now, hours)
        yield from orphaned_commands()
        if (paths.state / "agents").is_dir():  # an external agent has reported
            from ..views.restore_service import RestoreService

            hours = self._host.config.restore.retention_hours
            try:
                yield from RestoreService(paths, hours).expire(now)
            except (SteersmanError, OSError) as fault:  # no session fails to start because of it
                yield f"the sessions of other agents cannot be read: {fault}"
        with suppress(OSError, ConfigError):  # a full disk only makes the home look younger
            self.trash.note_start(now)

    def keep_within_budget(self) -> None:
        """Keep what sessions left on the disk under `checkpoints.budget`: look once, in a thread.

        The oldest copies are put into the trash, and what was there long is deleted.
        """
        if self._thread is None:
            # a daemon: if a signal arrives while it starts, no code would stop it
            self._thread = Thread(target=self._keep, name="steersman-storage-limit", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Delete nothing further, and wait for a deletion in progress; the next start continues."""
        self._is_closing = True
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _keep(self) -> None:
        if self._is_closing:
            return
        host = self._host
        try:
            now, stops = time.time(), lambda: self._is_closing
            retention = Retention(host, now, by_age=False, stops=stops)
            done = retention.copies()
            for swept, what in (
                (done, "the copies of files"),
                (retention.outputs(), "the long outputs"),
                (retention.sessions(), "everything"),
            ):
                if swept.gone:
                    gone = path_names(swept.gone, NAMED)
                    host.complain(f"Deleted from the trash: {what} of {gone}.")
        except (OSError, SteersmanError) as error:
            host.complain(f"copies of files cannot be kept within `checkpoints.budget`: {error}")
        else:
            self._report(done, size_of(host.runtime.shared.storage.copies))

    def _report(self, done: Swept, left: int) -> None:
        budget = self._host.config.checkpoints.budget
        takes = f"{size_text(left)}, and `checkpoints.budget` is {size_text(budget)}"
        if done.new:
            self._host.complain(
                f"Copies of files take {takes}: those of these sessions are in the trash now: "
                f"{path_names(done.new, NAMED)}. `steersman home trash` shows and restores them."
            )
        if left > budget and not self._is_closing and not self.trash.holds("copies"):
            self._host.complain(
                f"Copies of files take {takes}, but they are still needed. "
                "`steersman sessions list --size` shows the sessions."
            )
