"""Whether workers on several machines can share a storage of trials."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from optbench.errors import ParameterError
from optbench.tune.storage import shown

FILE_SCHEME = "sqlite"
LOOPBACK = ("", "localhost", "127.0.0.1", "::1", "[::1]")


def shared_url(url: str, here: str, hosts: Collection[str]) -> str:
    """Return a storage's URL as workers on all hosts may use it; refuse one that they cannot share.

    A file, or a database that only this machine reaches, is shared where all nodes are this one.
    """
    others = sorted({*hosts} - {here})
    if not others:
        return absolute(url)
    where = f"the cluster has nodes on other machines ({', '.join(others)})"
    remedy = "give a database that every node reaches: --storage postgresql://USER@HOST/DATABASE"
    if is_file(url):
        kind = "an SQLite file" if "://" in url else "a journal file"
        raise ParameterError(
            f"storage {shown(url)!r} is {kind}, whose locks hold on one machine, and {where}; "
            f"{remedy}"
        )
    if host_of(url) in LOOPBACK:
        raise ParameterError(
            f"storage {shown(url)!r} is on {host_of(url) or 'a socket of this machine'}, which on "
            f"every node means that node itself, and {where}; {remedy}"
        )
    return url


def is_file(url: str) -> bool:
    """Whether trials are in a file: a journal or SQLite."""
    return "://" not in url or url.startswith(FILE_SCHEME)


def absolute(url: str) -> str:
    """Return the URL of a file with its whole path: workers have another current folder."""
    if "://" not in url:
        return str(Path(url).resolve())
    scheme, _, rest = url.partition("://")
    is_relative = scheme.startswith(FILE_SCHEME) and rest[:2] != "//" and len(rest) > 1
    return f"{scheme}:///{Path(rest[1:]).resolve()}" if is_relative else url


def host_of(url: str) -> str:
    """Return the host of a database's URL."""
    from sqlalchemy.engine import make_url

    return make_url(url).host or ""
