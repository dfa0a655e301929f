"""What a person chose for one folder, without writing into it.

One small file per folder in the state folder, as for trust. It is a layer of the configuration:
after the project's own file, before the one that `STEERSMAN_CONFIG` names.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from .paths import Paths, write_private

__all__ = ["choose_for_folder", "folder_file"]


def folder_file(paths: Paths, folder: Path) -> Path:
    """Return where the choices for a folder are, if there are any."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return paths.state / "folders" / f"{name}.toml"


def choose_for_folder(paths: Paths, folder: Path, choice: dict[str, Any]) -> Path:
    """Write the choices for a folder, in the keys of the configuration; return the file."""
    import tomli_w

    file = folder_file(paths, folder)
    head = f"# What was chosen for {folder.resolve()!s:.200}; commands write this file.\n"
    text = head.replace("\r", " ") if "\n" not in head[:-1] else ""
    write_private(file, (text + tomli_w.dumps(choice)).encode("utf-8", "backslashreplace"))
    return file
