"""Import a user's plug-ins first in a subprocess: an import may end it or never return."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError, PluginError
from optbench.plugins.discovery import Kind, files_by_name, load_class, module_of
from optbench.plugins.specs import name_of
from optbench.sandbox.process_tree import exit_words
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_PDEATHSIG, prctl
from optbench.workspace import checkout

TRIAL = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from optbench.sandbox.trial_import import import_all
import_all(json.loads(sys.argv[2]), int(sys.argv[3]))
"""
# Seconds for all plug-ins together: the libraries that they import take seconds, on a busy machine
# tens of seconds.
PATIENCE_S = 120.0
FIELDS: tuple[tuple[Kind, str, str], ...] = (
    ("problem", "problems", ""),
    ("solver", "solvers", "solver"),
)


def try_imports(table: Mapping[str, Any], patience_s: float = PATIENCE_S) -> None:
    """Raise for the first plug-in of a study file whose import ends the process or hangs."""
    wanted = [
        (kind, name)
        for kind, name in dict.fromkeys(users_plugins(table))
        if module_of(kind, name) not in sys.modules
    ]
    if not wanted:
        return
    words = [
        sys.executable,
        "-P",
        "-c",
        TRIAL,
        json.dumps(sys.path),
        json.dumps(wanted),
        str(os.getpid()),
    ]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False
        )
        output = done.stdout
        manner = f"importing it ends the process ({exit_words(done.returncode)})"
    except subprocess.TimeoutExpired as error:
        output, manner = error.stdout or b"", f"importing it takes more than {patience_s:g} s"
    finished = output.splitlines()
    for kind, name in wanted:
        if _progress_line(kind, name) not in finished:
            raise PluginError(
                f"{kind} {name!r} is unavailable: {files_by_name(kind)[name][0]}: {manner}"
            )


def import_all(wanted: Iterable[tuple[Kind, str]], parent: int) -> None:
    """Import the plug-ins in the subprocess."""
    end_with_parent(parent)
    for kind, name in wanted:
        with contextlib.suppress(OptbenchError):
            load_class(kind, name)
        sys.stdout.buffer.write(_progress_line(kind, name) + b"\n")
        sys.stdout.buffer.flush()


def end_with_parent(parent: int) -> None:
    """End this process with its parent, so that no hanging import outlives it."""
    if IS_LINUX:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def is_part_of_optbench(path: Path) -> bool:
    """Whether a plug-in is part of optbench: of the package, or of the source tree."""
    root = checkout()
    return path.is_relative_to(Path(__file__).parents[1]) or (
        root is not None and path.is_relative_to(root / path.parent.name)
    )


def users_plugins(table: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield the user's plug-ins that a study file names."""
    tune = table.get("tune")
    search = tune if isinstance(tune, Mapping) else {}
    for kind, field, key in FIELDS:
        entries = [
            *_listed(table.get(field)),
            *_listed(search.get(field)),
            *_listed([search[key]] if key in search else []),
        ]
        for entry in entries:
            spec = entry.get(key) if isinstance(entry, Mapping) else entry
            name = name_of(str(spec))
            paths = files_by_name(kind).get(name, [])
            if paths and not is_part_of_optbench(paths[0]):
                yield kind, name


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _progress_line(kind: str, name: str) -> bytes:
    return f"optbench imported {kind} {name}".encode()
