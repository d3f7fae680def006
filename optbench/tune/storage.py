"""Where trials are kept: a journal beside the results, or a database by its URL."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from optbench.errors import OptbenchError, ParameterError
from optbench.files import end_of_whole_lines

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.storages.journal._file import BaseJournalFileLock


class StorageError(OptbenchError):
    """The storage of trials cannot be used now."""


SCHEMES = ("sqlite", "postgresql", "mysql", "mariadb")
FOLDER = "tune"
SUFFIX = ".journal"


def folder_of(store_folder: Path, name: str) -> Path:
    """Locks, journal and page of a search."""
    return store_folder / FOLDER / name


def storage_url(given: str | None, folder: Path) -> str:
    """What ``open_storage`` takes: a URL, or the path of a journal, by default the search's own."""
    if given is None:
        return str(folder / f"trials{SUFFIX}")
    if "://" in given and given.partition("://")[0].partition("+")[0] not in SCHEMES:
        kinds = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise ParameterError(
            f"storage {given!r}: unknown kind of database; it takes {kinds} or the path of a "
            "journal file"
        )
    return given


def open_storage(url: str) -> BaseStorage:
    """An Optuna storage. Locks of the journal are the kernel's, so that a killed worker leaves none
    behind.
    """
    import optuna
    from optuna.storages.journal import JournalFileBackend

    if "://" in url:
        from sqlalchemy.exc import ArgumentError, SQLAlchemyError

        try:
            return optuna.storages.RDBStorage(url, engine_kwargs=_engine(url))
        except ArgumentError as error:
            raise ParameterError(f"storage {shown(url)!r}: {error}") from None
        except SQLAlchemyError as error:
            raise ParameterError(
                f"storage {shown(url)!r} cannot be used: {str(error).splitlines()[0]}"
            ) from None
        except ImportError as error:
            raise ParameterError(
                f"storage {shown(url)!r} needs a driver: {error}; install it, such as "
                "psycopg2-binary"
            ) from None
    path = Path(url)
    path.parent.mkdir(parents=True, exist_ok=True)
    return optuna.storages.JournalStorage(
        JournalFileBackend(str(path), lock_obj=cast("BaseJournalFileLock", KernelLock(path)))
    )


@contextmanager
def reachable(url: str) -> Iterator[None]:
    """A storage that fails in the middle, in our words."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        cause = str(error.__cause__ or error).strip().splitlines()[0]
        raise StorageError(
            f"storage {shown(url)!r} cannot be reached: {cause}. Finished trials and cells are "
            "kept; the same command goes on."
        ) from error


def shown(url: str) -> str:
    """A URL without its password."""
    if "://" not in url or "@" not in url:
        return url
    scheme, rest = url.split("://", 1)
    login, place = rest.rsplit("@", 1)
    return f"{scheme}://{login.partition(':')[0]}@{place}"


def _engine(url: str) -> dict[str, object]:
    """Writers of SQLite wait for each other; connections that a database has dropped are noticed
    before they are used.
    """
    return (
        {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}
    )


class KernelLock:
    """Optuna's interface of a journal's lock, by ``flock``; what a killed writer left half written
    goes before the next line.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.path = journal.with_name(f"{journal.name}.lock")
        self._held: IO[bytes] | None = None

    def acquire(self) -> bool:
        lock = self.path.open("ab")
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._held = lock
        self._mend()
        return True

    def release(self) -> None:
        assert self._held is not None
        self._held.close()
        self._held = None

    def _mend(self) -> None:
        """Cut off a last line that has no end: its writer was stopped before it reported it."""
        with self.journal.open("r+b") as file:
            file.truncate(end_of_whole_lines(file))
