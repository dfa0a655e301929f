"""Files and folders that outlive a power loss, from the moment that the call returns.

A new name is durable once its folder is synced, a file's bytes once the file is. So a file is replaced
by a draft beside it that is synced, renamed, and followed by a sync of the folder; a new folder is
followed by a sync of the one above it. Everything here works below a descriptor of a folder, too
(`folder`, as in `dir_fd`), and imports nothing but `os`, since hooks of other agents use it.
"""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike  # the hooks' process has no time for more

    Name = str | PathLike[str]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DRAFT = ".steersman-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def sync_folder(path: "Name", folder: int | None = None) -> None:
    """Make the names in a folder durable. Raises `OSError`.

    A folder that may not be read, or whose file system has no such sync, is passed over, as in
    PostgreSQL's `fsync_fname`.
    """
    try:
        descriptor = os.open(path, _FOLDER, dir_fd=folder)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EBADF, errno.EINVAL):
            raise
    finally:
        os.close(descriptor)


def make_folder(path: "Name", mode: int | None = None, folder: int | None = None) -> bool:
    """Make one folder durably; false if something has this name. Raises `OSError`.

    `mode` are its permission bits, whatever the umask; none: those of a new folder.
    """
    try:
        os.mkdir(path, 0o777 if mode is None else mode, dir_fd=folder)
    except FileExistsError:
        return False
    if mode is not None:
        os.chmod(path, mode, dir_fd=folder)
    sync_folder(os.path.dirname(path) or ".", folder)
    return True


def make_folders(path: "Name", mode: int | None = None) -> None:
    """Make a folder and its missing parents durably, all with this mode. Raises `OSError`."""
    if os.path.isdir(path):
        return
    if above := os.path.dirname(path):
        make_folders(above, mode)
    if not make_folder(path, mode) and not os.path.isdir(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))


def move_file(source: "Name", target: "Name", folder: int | None = None) -> None:
    """Give a file, whose bytes become durable first, the name of another one. Raises `OSError`."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)
    sync_folder(os.path.dirname(target) or ".", folder)


def draft_name() -> str:
    """Name a file that is being written, until it gets the name of another one; a kill leaves it."""
    return f"{_DRAFT}{os.urandom(8).hex()}"


def is_draft(name: str) -> bool:
    """Whether a file has a name of `draft_name`."""
    drawn = name.removeprefix(_DRAFT)
    return drawn != name and len(drawn) == 16 and set(drawn) <= set("0123456789abcdef")


def replace_file(
    path: "Name", content: bytes, mode: int | None = None, folder: int | None = None
) -> None:
    """Replace a file in one step; a symbolic link itself is replaced. Raises `OSError`.

    `mode` are its permission bits, whatever the umask; none: those of a new file.
    """
    draft = os.path.join(os.path.dirname(path), draft_name())
    made = 0o666 if mode is None else 0o600
    try:
        with os.fdopen(os.open(draft, _NEW, made, dir_fd=folder), "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(draft, path, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        _remove(draft, folder)
    sync_folder(os.path.dirname(path) or ".", folder)


def _remove(path: "Name", folder: int | None) -> None:
    try:
        os.unlink(path, dir_fd=folder)
    except OSError:
        return  # it was moved, or never made
