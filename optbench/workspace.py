"""Where the user's plug-ins and results live: a folder marked by ``optbench.toml``, named by
``$OPTBENCH_WORKSPACE``.

The variable is read when the plug-in packages are first imported, and inherited by worker
processes, so that spawned and forkserver workers see the same plug-ins as their parent.
"""

from __future__ import annotations

import os
from pathlib import Path

from optbench.errors import OptbenchError

MARKER = "optbench.toml"
VARIABLE = "OPTBENCH_WORKSPACE"
STORE = ".optbench"
# The one folder beside its own that a confined process may write to, if there is one.
KEEPS_IN = "OPTBENCH_KEEPS_IN"
FOLDERS = {"problem": "problems", "solver": "solvers", "study": "studies"}


def find_root(start: Path | None = None) -> Path | None:
    """The nearest folder at or above ``start`` (the current folder) that holds the marker."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / MARKER).is_file()), None)


def activate(path: Path | None = None) -> Path | None:
    """Make ``path`` the workspace of this process and its workers; by default what the variable
    says, or the marker finds.

    Call it before the first plug-in is imported: that is when the folders are looked up.
    """
    named = os.environ.get(VARIABLE)
    if path is None and named:
        path = Path(named)
    if path is None:
        path = find_root()
    if path is None:
        return None
    root = path.resolve()
    if not root.is_dir():
        raise OptbenchError(
            f"workspace {str(path)!r} is no folder; mend ${VARIABLE}, or unset it to use the "
            "current folder's"
        )
    os.environ[VARIABLE] = str(root)
    return root


def store() -> Path:
    """Folder of local results: ``.optbench`` in the workspace, or in the current folder outside of
    any.
    """
    return (activate() or Path.cwd()) / STORE


def kept_folders(name: str) -> list[Path]:
    """Folders of what took long to make and is used again: it is read from all of them, and written
    to the last one.
    """
    beneath = os.environ.get(KEEPS_IN)
    return [store() / name, *([Path(beneath) / name] if beneath else [])]


def bank_file() -> Path:
    """The workspace's bank of bounds."""
    return store() / "bounds.sqlite"


def checkout() -> Path | None:
    """The source tree this package is imported from, when it is one."""
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def plugin_path(folder: str, own: str) -> list[str]:
    """Where plug-ins of one folder are looked for, first match wins: the workspace, the checkout,
    the package itself.
    """
    roots = [root for root in (activate(), checkout()) if root is not None]
    found = [root / folder for root in roots if (root / folder).is_dir()]
    return list(dict.fromkeys([*map(str, found), own]))
