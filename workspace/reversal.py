"""Reverts of what a session's calls changed, and their undoing: orders and outcomes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..machines import protocol as m
from ..workflows.spelling import spelled
from .blob_store import EVERYTHING, LARGEST, BlobStore
from .change_log import ChangeLog
from .restore import Restore, is_moving, load_restore
from .restore_plan import (
    KeptFile,
    PathChange,
    PathWrite,
    RestorePlan,
    chains,
    is_bare_folder,
    make_plan,
)
from .scan import PathState, missing_parents


class Reversal:
    """One session's change log, and the restores that go by it; their files lie in `place`.

    To open it finishes what a crash cut off. Raises `OSError`. `is_entered`: what was carried out
    outlives anything; if not, it is finished when this is opened again.
    """

    def __init__(self, place: Path, session: str, folder: Path, blobs: BlobStore) -> None:
        self.ledger = ChangeLog(place / f"ledger-{session}.jsonl")
        self.is_entered = True
        self._place, self._session = place, session
        self._folder, self._blobs = folder, blobs
        for restore in self._restores():
            if restore.phase == "staging":
                restore.abandon(folder)
            elif restore.phase == "moving":
                restore.finish(folder, blobs)
                self._close(restore)

    def count(self, order: m.RestoreFiles) -> int:
        """Return how many files an order is about."""
        if order.scope == "undo":
            restore = self._to_undo(order)
            return len(restore.rescue) if restore else 0
        return sum(not is_bare_folder(chain) for chain in chains(self._wanted(order)).values())

    def known(self, order: m.RestoreFiles) -> m.RestoreEnded | None:
        """Return the outcome of an order that was carried out before; none if it was not."""
        file = self._file(order.id)
        return self._outcome(load_restore(file)) if file.exists() else None

    def carry_out(self, order: m.RestoreFiles) -> m.RestoreEnded:
        """Carry out an order, or say what it would do. Raises `RestoreFailed`, `OSError`."""
        return self._undo(order) if order.scope == "undo" else self._revert(order)

    def cut_off_elsewhere(self) -> list[str]:
        """Name the other sessions of this folder whose revert began to move files and has not ended."""
        found: set[str] = set()
        for file in self._place.glob("restore-*-*.json"):
            session = file.stem.removeprefix("restore-").rpartition("-")[0]
            if session != self._session and is_moving(file):
                found.add(session)
        return sorted(found)

    def still(self) -> set[str]:
        """Name the paths that are as the last revert of this session left them."""
        left: dict[str, PathState | None] = {}
        for restore in self._restores():
            for put in restore.done if restore.phase == "done" else ():
                left.setdefault(put.path, put.target)
        return {
            path
            for path, state in left.items()
            if self._blobs.capture(self._folder, path, EVERYTHING) == state
        }

    # Choosing the changes -------------------------------------------------------------------------

    def _revert(self, order: m.RestoreFiles) -> m.RestoreEnded:
        wanted = self._wanted(order)
        plan = self._plan(wanted, order)
        names = [(touch.call, touch.path) for touch in wanted]
        turns = list(dict.fromkeys(touch.turn for touch in wanted))
        about: dict[str, Any] = {"scope": order.scope, "names": names, "turns": turns, "undoes": ""}
        return self._carry_out(order, plan, about)

    def _wanted(self, order: m.RestoreFiles) -> list[PathChange]:
        if order.scope == "last":
            return self.ledger.last(order.turns)
        if order.since:
            return self.ledger.since(order.since)
        return self.ledger.of(order.turns) if order.turns else self.ledger.newest(order.resumed)

    def _undo(self, order: m.RestoreFiles) -> m.RestoreEnded:
        """Give back what a revert replaced; the same rule: only what still is as the revert left it."""
        restore = self._to_undo(order)
        if restore is None:
            unknown = tuple(
                (path, "no revert that can be undone touched it") for path in order.paths
            )
            return m.RestoreEnded(id=order.id, kept=unknown)
        done = [put for put in restore.done if _is_named(put.path, order.paths)]
        touches = [
            PathChange(
                turn="",
                call=restore.name,
                tool="revert",
                path=put.path,
                before=restore.rescue[put.path],
                after=put.target,
            )
            for put in done
            if put.path in restore.rescue
        ]
        missing = [
            name for name in order.paths if not any(_is_named(put.path, (name,)) for put in done)
        ]
        plan = self._plan(touches, order)
        kept = (
            *plan.kept,
            *(KeptFile(path=path, why="the last revert did not touch it") for path in missing),
        )
        about: dict[str, Any] = {"scope": "undo", "names": [], "turns": restore.about["turns"]}
        about["undoes"] = restore.name
        shared = {*restore.about["shared"]} if order.paths else set[str]()
        mine = tuple(path for path in plan.files if path in shared)  # a person says whose they are
        return self._carry_out(order, replace(plan, kept=kept, shared=mine), about)

    def _to_undo(self, order: m.RestoreFiles) -> Restore | None:
        """Find the newest revert of this session that is not wholly undone."""
        for restore in self._restores():
            if restore.about["scope"] == "undo" or restore.phase != "done":
                continue
            left = set(restore.rescue) - set(restore.about.get("undone", ()))
            if any(_is_named(path, order.paths) for path in left):
                restore.rescue = {path: restore.rescue[path] for path in sorted(left)}
                return restore
        return None

    def _restores(self) -> list[Restore]:
        files = self._place.glob(f"restore-{self._session}-*.json")
        newest = sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)
        return [load_restore(file) for file in newest]

    def _plan(self, touches: list[PathChange], order: m.RestoreFiles) -> RestorePlan:
        found = chains(touches)
        now: dict[str, PathState | None] = {}
        for path, chain in found.items():
            is_loose = chain.left is not None and chain.left.kind in ("large", "unread")
            limit = LARGEST if is_loose else EVERYTHING
            now[path] = self._blobs.capture(self._folder, path, limit)
        plan = make_plan(touches, now, force=order.force)
        return replace(plan, puts=(*plan.puts, *self._homes(plan.puts)))

    def _homes(self, puts: Iterable[PathWrite]) -> list[PathWrite]:
        """Plan the folders that these paths need and that no other write restores."""
        paths = [put.path for put in puts if put.target is not None]
        missing = {folder for path in paths for folder in missing_parents(self._folder, path)}
        missing -= {put.path for put in puts}
        return [
            PathWrite(path=folder, now=None, target=PathState(kind="folder"))
            for folder in sorted(missing)
        ]

    # Doing it -------------------------------------------------------------------------------------

    def _carry_out(
        self, order: m.RestoreFiles, plan: RestorePlan, about: dict[str, Any]
    ) -> m.RestoreEnded:
        about |= {"shared": list(plan.shared), "yours": list(plan.yours)}
        restore = Restore(
            name=order.id,
            file=self._file(order.id),
            puts=list(plan.puts),
            kept=list(plan.kept),
            about=about,
        )
        if not order.is_dry_run:
            restore.prepare(self._folder, self._blobs)
            self._finish(restore)
        return self._outcome(restore)

    def _finish(self, restore: Restore) -> None:
        """Move files to their places, and enter that."""
        try:
            restore.finish(self._folder, self._blobs)
            self._close(restore)
        except OSError:
            self.is_entered = False

    def _close(self, restore: Restore) -> None:
        """Enter into the change log what was restored, then close the restore."""
        done = {put.path for put in restore.done}
        kept = {file.path for file in restore.kept}
        about = restore.about
        if about["undoes"]:
            self.ledger.undo(about["undoes"], done - {*about["shared"]})
            undone = load_restore(self._file(about["undoes"]))
            undone.about["undone"] = sorted({*undone.about.get("undone", ()), *done})
            undone.save()
        else:
            names = [(call, path) for call, path in about["names"] if path not in kept]
            self.ledger.revert(restore.name, names)
        restore.phase = "done"
        if restore.puts:
            restore.save()

    def _file(self, order: str) -> Path:
        return self._place / f"restore-{self._session}-{order}.json"

    def _bare_folders(self, restore: Restore) -> list[str]:
        """List the folders that were made or removed, with nothing in them."""
        paths = {put.path for put in restore.done}
        above = {str(folder) for path in paths for folder in Path(path).parents}
        return [
            put.path
            for put in restore.done
            if put.is_folder
            and put.path not in above
            and not (put.target is None and self._stays(put.path, restore))
        ]

    def _stays(self, path: str, restore: Restore) -> bool:
        """Whether a folder that was to go is there, or has something in it that will keep it."""
        try:
            return bool(os.listdir(self._folder / path)) or restore.phase == "done"
        except OSError:
            return False

    def _outcome(self, restore: Restore) -> m.RestoreEnded:
        turns = [str(turn) for turn in restore.about["turns"]]
        unknown = [(turn, why) for turn, why in self.ledger.blind.items() if turn in turns]
        return m.RestoreEnded(
            id=restore.name,
            restored=(
                *(put.path for put in restore.done if not put.is_folder),
                *(f"{path}/" for path in self._bare_folders(restore)),
            ),
            kept=tuple((file.path, file.why) for file in restore.kept),
            shared=tuple(restore.about["shared"]),
            yours=tuple(restore.about["yours"]),
            turns=tuple(turns),
            notes=tuple(f"what commands changed in turn {turn}: {why}" for turn, why in unknown),
        )


def _is_named(path: str, names: Sequence[str]) -> bool:
    """Whether one of these files or folders is meant, or has this path in it; all are without a name."""
    shown = spelled(path)
    return not names or any(name == "." or f"{shown}/".startswith(f"{name}/") for name in names)
