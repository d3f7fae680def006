"""``init`` makes a workspace, ``new`` a small working plug-in with its test; no file is
overwritten.
"""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template

from optbench.errors import OptbenchError, ParameterError, nearest
from optbench.workspace import FOLDERS, MARKER, activate

EXAMPLE_PROBLEM, EXAMPLE_SOLVER, EXAMPLE_STUDY = "two_pools", "list_rule", "first_look"
# A batch script for Slurm, beside the kinds of plug-ins.
BATCH = "slurm"
KINDS = (*FOLDERS, BATCH)
# Plug-ins in a new study: the examples of `init` if they exist, else built-in ones.
OWN = {"PROBLEM": EXAMPLE_PROBLEM, "SIZE": "jobs", "SOLVER": EXAMPLE_SOLVER, "TRIES": "tries"}
BUILT_IN = {"PROBLEM": "gpu_dag", "SIZE": "tasks", "SOLVER": "random_rules", "TRIES": "k"}


def init(path: str | Path) -> list[Path]:
    """Make ``path`` a workspace with an example of each plug-in; return the files written."""
    root = Path(path)
    if root.exists() and not root.is_dir():
        raise OptbenchError(f"{str(path)!r} is a file; name a folder for the workspace")
    files = {
        root / MARKER: fill("optbench.toml"),
        root / "README.md": fill("README.md"),
        root / ".gitignore": fill("gitignore"),
        root / "tests" / "conftest.py": fill("conftest.py"),
        **plugin_files("problem", EXAMPLE_PROBLEM, root),
        **plugin_files("solver", EXAMPLE_SOLVER, root),
        **plugin_files("study", EXAMPLE_STUDY, root),
    }
    return write({path: text for path, text in files.items() if not path.exists()})


def new(kind: str, name: str, root: str | Path | None = None) -> list[Path]:
    """Write a small working plug-in and its test, or a batch script, into the workspace; return the
    files written.
    """
    if kind not in KINDS:
        raise ParameterError(f"there is no kind of plug-in called {kind!r}; {nearest(kind, KINDS)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ParameterError(
            f"{name!r} cannot name a {kind}: use lower-case letters, digits and underscores, "
            "such as 'my_rule'"
        )
    place = Path(root) if root is not None else activate()
    if place is None:
        raise OptbenchError(
            f"this folder does not lie in a workspace (no {MARKER} here or above); run `optbench "
            "init` first"
        )
    files = plugin_files(kind, name, place)
    there = [path for path in files if path.exists()]
    if there:
        raise OptbenchError(
            f"{there[0]} already exists; nothing was written. Choose another name, or move the "
            "file away"
        )
    return write(files)


def plugin_files(kind: str, name: str, root: Path) -> dict[Path, str]:
    """The files of one plug-in and their texts."""
    if kind == BATCH:
        return {root / f"{name}.sh": template_text("slurm.sh").replace("@NAME@", name)}
    folder = FOLDERS[kind]
    if kind == "study":
        examples = (
            root / "problems" / f"{EXAMPLE_PROBLEM}.py",
            root / "solvers" / f"{EXAMPLE_SOLVER}.py",
        )
        own = name == EXAMPLE_STUDY or all(path.exists() for path in examples)
        return {
            root / folder / f"{name}.toml": fill("study.toml", name, **(OWN if own else BUILT_IN))
        }
    return {
        root / folder / f"{name}.py": fill(f"{kind}.py", name),
        root / "tests" / folder / f"test_{name}.py": fill(f"test_{kind}.py", name),
    }


def fill(template: str, name: str = "", **subject: str) -> str:
    """Fill in a template of ``optbench/templates`` for a plug-in of this name."""
    words = name.split("_")
    return Template(template_text(template)).safe_substitute(
        NAME=name,
        CLASS="".join(word.capitalize() for word in words),
        TITLE=" ".join(words).capitalize(),
        **subject,
    )


def template_text(template: str) -> str:
    """The text of a template as it is."""
    place = resources.files("optbench") / "templates" / f"{template}.txt"
    return place.read_text(encoding="utf-8")


def write(files: dict[Path, str]) -> list[Path]:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(files)
