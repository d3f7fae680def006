"""What of the workspace travels to the nodes: plug-ins and the marker, never the store."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.units import BYTES_PER_MB
from optbench.workspace import FOLDERS, MARKER, STORE, activate

# Ray refuses larger packages, and a package is loaded by every node.
MAX_PACKAGE_MB = 100
IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))", re.M)


def package_plugins(target: Path) -> Path:
    """Copy the workspace's plug-ins to ``target``, an empty workspace where there is none.

    Left out are hidden files, caches, and links that lead into the store; a link that leaves the
    workspace is refused.
    """
    target.mkdir(parents=True, exist_ok=True)
    (target / MARKER).touch()
    root = activate()
    if root is None:
        return target
    if (root / MARKER).is_file():
        shutil.copyfile(root / MARKER, target / MARKER)
    total = 0
    for source, name in _plugin_files(root):
        total += source.stat().st_size
        if total > MAX_PACKAGE_MB * BYTES_PER_MB:
            raise OptbenchError(
                f"{root}: problems/, solvers/ and studies/ have more than {MAX_PACKAGE_MB} MB, the "
                f"most that travels to the nodes (at {name}); give large files as parameters: they "
                "travel by their content, once per node"
            )
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / name)
    return target


def imported_modules(*folders: Path) -> set[str]:
    """Return the top-level names that the plug-ins in these folders import."""
    found = set()
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for source, several in IMPORTED.findall(text):
            for name in [source] if source else several.split(","):
                found.add(name.split(".")[0].split(" as ")[0].strip())
    return found - {""}


def _plugin_files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file that travels with its name within the package."""
    home, store = root.resolve(), (root / STORE).resolve()
    for folder in sorted(FOLDERS.values()):
        for place, folders, names in os.walk(root / folder):
            folders[:] = sorted(_travelling(folders))
            for name in (*folders, *sorted(_travelling(names))):
                path = Path(place) / name
                _refuse_leaving(path, home)
                if path.is_file() and not path.resolve().is_relative_to(store):
                    yield path, path.relative_to(root).as_posix()


def _refuse_leaving(path: Path, root: Path) -> None:
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        raise OptbenchError(
            f"{path} is a link to {path.resolve()}, outside of the workspace: whatever is there "
            "would be sent to the nodes. Put a copy in its place, or give the file as a parameter"
        )


def _travelling(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith(".") and name != "__pycache__"]
