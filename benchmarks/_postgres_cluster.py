"""A PostgreSQL cluster in a folder of its own, for benchmarks that need a database."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"


def start_cluster(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Create a cluster and start its server; as another user when this one is root, whom PostgreSQL
    refuses.
    """
    data = folder / "pg"
    data.mkdir()
    who: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if who:
        shutil.chown(data, "postgres", "postgres")
        folder.chmod(0o755)
    words = [program("initdb"), "-D", str(data), "-U", "bench", "--auth=trust", "--no-sync"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **who)
    words = [program("postgres"), "-D", str(data), "-h", HOST, "-p", str(port), "-k", str(data)]
    with (folder / "postgres.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, **who)


def database_url(port: int) -> str:
    return f"postgresql+psycopg2://bench@{HOST}:{port}/postgres"


def program(name: str) -> str:
    """A program of PostgreSQL, which Debian keeps off the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(places[-1]) if places else shutil.which(name)
    if found is None:
        raise SystemExit(f"no {name}: install PostgreSQL")
    return found
