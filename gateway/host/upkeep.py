"""What a home keeps beside its journal, and throws away in time: saved queues, copies, the trash."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from ...machines.errors import ConfigError
from ...ports.process.leftover import orphaned_commands
from ..home.retention import StorageLimit, queues_folder
from ..home.trash import Trash
from ..views.saved_queues import SavedQueues

if TYPE_CHECKING:
    from .host import Host


class Upkeep:
    """That of the home in which a process has sessions; `limit` bounds what they leave on the disk."""

    def __init__(self, host: Host) -> None:
        self._paths, self._config = host.paths, host.config
        self.trash = Trash(host.paths.state)
        self.saved_queues = SavedQueues(host, self.trash)
        storage, queues = host.runtime.shared.storage, queues_folder(host.paths, host.config)
        self.limit = StorageLimit(
            storage, host.store, self.trash, host.config, queues, host.complain
        )
        self.has_begun = False

    def begin(self) -> Iterator[str]:
        """Throw away what was outlived, and yield what there is to say of it and of what was left."""
        now = time.time()
        hours = self._config.auto_queue.persistence.retention_hours
        yield from self.saved_queues.expire(now, hours)
        yield from orphaned_commands()
        if (self._paths.state / "agents").is_dir():  # an external agent has reported
            from ..views.restore_service import outlived_elsewhere

            yield from outlived_elsewhere(self._paths, self._config.restore.retention_hours)
        with suppress(OSError, ConfigError):  # a full disk only makes the home look younger
            self.trash.note_start(now)
