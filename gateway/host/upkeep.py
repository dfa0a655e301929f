"""What a home keeps beside its journal, and throws away in time: saved queues, copies, the trash."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from ...actors.runtime import Runtime
from ...machines.errors import ConfigError
from ...ports.process.leftover import orphaned_commands
from ...workflows.config import Config
from ...workflows.paths import Paths
from ..events.translation import EventPublisher
from ..home.retention import StorageLimit, queues_folder
from ..home.trash import Trash
from ..views.saved_queues import SavedQueues


class Upkeep:
    """That of the home in which a process has sessions; `limit` bounds what they leave on the disk.

    `publisher` publishes the events of a session whose queue is only tended; `complain` tells people.
    """

    def __init__(
        self,
        runtime: Runtime,
        paths: Paths,
        config: Config,
        publisher: Callable[[str], EventPublisher],
        complain: Callable[[str], None],
    ) -> None:
        self.trash = Trash(paths.state)
        most = config.auto_queue.max_queue_size
        self.saved_queues = SavedQueues(runtime, most, publisher, self.trash)
        storage, queues = runtime.shared.storage, queues_folder(paths, config)
        self.limit = StorageLimit(storage, runtime.store, self.trash, config, queues, complain)
        self.has_begun = False
        self._paths, self._config = paths, config

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
