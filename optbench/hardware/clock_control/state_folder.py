"""The folder with the journals and locks of devices: stable, so that the next process finds them.

It is ``$OPTBENCH_GPU_STATE`` where that is set; else ``/var/lib/optbench/gpu`` for root, whoever
became root and how; else ``$XDG_STATE_HOME/optbench/gpu``, by default below ``~/.local/state``.
Processes that use different folders do not see each other's journals and locks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from optbench.errors import OptbenchError
from optbench.files import replacing, unfinished

VARIABLE = "OPTBENCH_GPU_STATE"
OF_ROOT = Path("/var/lib/optbench/gpu")
JOURNAL, LOCK = ".journal", ".lock"


class StateFolderError(OptbenchError):
    """The folder of the journals cannot be made, read or written."""


def state_folder() -> Path:
    """The folder of this user; it may not exist yet."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    if os.geteuid() == 0:
        return OF_ROOT
    return folder_of_user(os.environ, Path.home())


def folder_of_user(environ: Mapping[str, str], home: Path) -> Path:
    """The folder of a user who is not root, always absolute: the watchdog works elsewhere.

    A relative ``XDG_STATE_HOME`` is ignored, as the specification of the variable says.
    """
    base = Path(environ.get("XDG_STATE_HOME", ""))
    base = base if base.is_absolute() else home.absolute() / ".local" / "state"
    return base / "optbench" / "gpu"


def readable_folders() -> tuple[Path, ...]:
    """Folders whose journals this user may look at: the own one, and root's where it is another."""
    own = state_folder()
    return (own,) if own == OF_ROOT or os.environ.get(VARIABLE) else (own, OF_ROOT)


def prepared(folder: Path) -> Path:
    """The folder, made if it is missing, and durable: its entry in the parent is synced."""
    try:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        for each in missing:
            sync_folder(each.parent)
    except OSError as error:
        raise StateFolderError(_cannot("made", folder, error)) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        denied = PermissionError(0, "permission denied")
        raise StateFolderError(_cannot("written", folder, denied))
    return folder


@contextmanager
def replacing_durably(path: Path) -> Iterator[Path]:
    """As ``replacing``, and the name is on the disk at the end; the caller syncs the content.

    The caller holds the device of the file: what a killed process left beside it is removed.
    """
    for leftover, _ in unfinished(path):
        leftover.unlink(missing_ok=True)
    with replacing(path) as fresh:
        yield fresh
    sync_folder(path.parent)


def remove_durably(path: Path) -> None:
    """Remove a file, and bring that to the disk."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def path_of(folder: Path, uuid: str, suffix: str) -> Path:
    """The file of a device; characters that are unsafe in a name are quoted."""
    return folder / f"{quote(uuid, safe='')}{suffix}"


def uuid_of(path: Path) -> str:
    """The device that a file is of."""
    return unquote(path.name.rpartition(".")[0])


def _cannot(done: str, folder: Path, error: OSError) -> str:
    return (
        f"the folder of clock journals {str(folder)!r} cannot be {done}: {error.strerror}. Without "
        f"a journal no clock is locked. Set {VARIABLE} to a folder on a local disk that you may "
        "write to and that stays after a restart"
    )
