"""What a client sees of a session of this process beside its events, and the files that it changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import Any

from ..actors.runtime import Runtime
from ..actors.work.executor import restore_files
from ..journal.codec import decode
from ..journal.record import SessionRecord
from ..journal.recovery import newest_first, whole_conversation
from ..machines import protocol as m
from ..machines.conversation import ChatMessage
from ..machines.errors import SteersmanError
from ..workspace.workspace import FileChange
from .views.dump import Traces, dump_live
from .wording.redaction import Redactor


class SessionView:
    """The conversation and the state of the session that a client is at, which `session` names.

    `secrets` are names of environment variables that hold keys.
    """

    def __init__(
        self, runtime: Runtime, session: Callable[[], str], secrets: Collection[str]
    ) -> None:
        self._runtime, self._session, self._secrets = runtime, session, secrets
        self._looking = threading.Lock()
        self._traces: Traces = {}

    def newest_messages(self) -> Iterator[ChatMessage]:
        """Read the conversation backwards from the journal, as far as is wanted."""
        self._runtime.settle()
        return newest_first(self._runtime.store, self._session())

    def messages(self, upto: int | None = None) -> list[ChatMessage]:
        """Return the conversation from the journal, up to an entry, also what was compacted."""
        self._runtime.settle()
        return list(whole_conversation(self._runtime.store, self._session(), upto))

    def state(self, session: str = "") -> dict[str, Any]:
        """Return the record as it is now, also of a subagent that is open here, as plain data."""
        return self._runtime.inspect(session or self._session())

    def inspect(self) -> dict[str, Any]:
        """Return the session's state as plain data, without secrets or terminal escapes."""
        with self._looking:
            return self.redacted(dump_live(self._runtime, self._session(), self._traces))

    def redacted(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take secrets and terminal escapes out of data."""
        shown: dict[str, Any] = self.redactor.data(data)
        return shown

    @cached_property
    def redactor(self) -> Redactor:
        """What takes secrets out of texts and data, with the keys of the configured models."""
        return Redactor(os.environ, self._secrets)


class ChangedFiles:
    """The files that a session changed, by the copies of them; calls block, for a client's thread."""

    def __init__(self, runtime: Runtime, session: str) -> None:
        self._runtime, self._session = runtime, session
        self._workspace = runtime.workspace(session)

    @property
    def are_kept(self) -> bool:
        """Whether anything is kept of the files that the session changes."""
        return self._workspace is not None

    def diff(self, turns: tuple[str, ...] = ()) -> list[FileChange]:
        """Return what turns changed; without any, the newest that changed something."""
        if self._workspace is None:
            return []
        return self._runtime.run(self._workspace.diff(turns))

    def changed_by(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed, and that are not as they were before."""
        if self._workspace is None:
            return []
        return self._runtime.run(self._workspace.changed_files(turns))

    def changed_by_run(self) -> list[str]:
        """Name the files that a run has changed in all its turns, except its own in `.steersman`."""
        try:
            made = decode(SessionRecord, self._runtime.inspect(self._session)).turns_made
            found = self.changed_by(tuple(f"t{number}" for number in range(1, made + 1)))
        except (OSError, SteersmanError):
            return []  # the revert reports what cannot be read
        return [path for path in found if not _is_own(path, self._session)]

    def restore(
        self,
        order: m.RestoreFiles,
        hear: Callable[[m.RestoreCounted | m.RestoreEnded], None],
        seconds: float,
    ) -> None:
        """Restore files without the session's journal; `hear` is called with what comes of it."""
        self._runtime.run(restore_files(self._workspace, order, hear), seconds)

    @property
    def storage(self) -> str:
        """The name of the storage that has the copies of files of this program's turns."""
        return self._runtime.shared.storage.name


def _is_own(path: str, run: str) -> bool:
    """Whether a file is in a folder of `.steersman` that is named after the run."""
    home, _, rest = path.partition("/")
    return home == ".steersman" and run in rest.partition("/")[0]
