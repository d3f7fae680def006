"""Facts of one machine that decide whether it computes the same: Python, packages, the code.

Ray sends this module to a node as a whole, so that it also works where optbench is not installed:
it imports the standard library only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

NAME = "optbench"
# The built-in plug-ins lie in these folders, beside the package in a checkout and within it in a
# wheel.
BUILT_IN = ("problems", "solvers")
MISSING = "not installed"
# What these require computes nothing in a cell.
NOT_FOLLOWED = ("mlflow", "optuna", "ray", "rich")


def facts_of_this_machine(packages: Iterable[str]) -> dict[str, Any]:
    """Return the version of Python, of each package, and the digest of optbench's code."""
    versions = {name: version_of(name) for name in packages}
    return {
        "host": platform.node(),
        "python": platform.python_version(),
        "packages": versions,
        "code": code_digest(),
        "cores": usable_cores(),
    }


def usable_cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return MISSING


def code_folders() -> dict[str, Path]:
    """Return the folders of optbench and of its built-in plug-ins; empty where it is missing."""
    found = importlib.util.find_spec(NAME)
    if found is None or found.origin is None:
        return {}
    package = Path(found.origin).parent
    is_checkout = (package.parent / "pyproject.toml").is_file()
    beneath = package.parent if is_checkout else package / "plugins"
    return {NAME: package, **{folder: beneath / folder for folder in BUILT_IN}}


def code_digest() -> str:
    """Return a digest of the source files of optbench and its built-in plug-ins."""
    places = code_folders()
    if not places:
        return MISSING
    digest = hashlib.sha256()
    for part, place in sorted(places.items()):
        for name, path in sorted(_sources(place, part == NAME)):
            digest.update(f"{part}/{name}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _sources(folder: Path, is_package: bool) -> Iterator[tuple[str, Path]]:
    """Yield Python files; of the package, those of the plug-in folders that a wheel holds count
    once, beneath their own names.
    """
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        is_plugin = is_package and parts[0] == "plugins" and parts[1] in BUILT_IN
        if not (is_plugin and len(parts) > 2 and parts[2] != "__init__.py"):
            yield "/".join(parts), path


def compared_packages(modules: Iterable[str] = ()) -> list[str]:
    """Return the packages whose versions must agree: ray, what optbench requires, directly or not,
    and the packages of these imported modules. What a package requires for an extra counts where
    that extra is asked for, as in ``package[extra]``.
    """
    found: dict[tuple[str, str], None] = {}
    waiting = [(name, "") for name in (NAME, "ray", *_distributions(modules))]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found[name, extra] = None
        if name not in NOT_FOLLOWED:
            waiting += [each for text in needed for each in _required(text, extra)]
    return sorted({name for name, _ in found})


def _required(text: str, extra: str) -> Iterator[tuple[str, str]]:
    """Yield the package of a requirement and each extra of it that is asked for, if the requirement
    is one of this extra (of none: ``""``).
    """
    words, _, marker = text.partition(";")
    asked = re.search(r"""extra\s*==\s*["']([^"']+)["']""", marker)
    matched = re.match(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?", words)
    if matched is None or (_normal(asked.group(1)) if asked else "") != extra:
        return
    name, extras = _normal(matched.group(1)), matched.group(2) or ""
    yield name, ""
    for each in filter(None, map(str.strip, extras.split(","))):
        yield name, _normal(each)


def _distributions(modules: Iterable[str]) -> set[str]:
    known = metadata.packages_distributions()
    return {_normal(name) for module in modules for name in known.get(module, ())}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def differences(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Describe how a node differs from the driver, most important first."""
    out = []
    if here["python"] != there["python"]:
        out.append(f"Python {there['python']}; the driver has {here['python']}")
    if there["code"] == MISSING:
        out.append(f"{NAME} is not installed; the driver has {here['packages'].get(NAME)}")
    for name, version in here["packages"].items():
        other = there["packages"].get(name, MISSING)
        if version != other and not (name == NAME and there["code"] == MISSING):
            out.append(f"{name} {other}; the driver has {version}")
    if MISSING != there["code"] != here["code"]:
        what = "another state of optbench's code and built-in plug-ins"
        out.append(f"{what} ({there['code']}; the driver has {here['code']})")
    return out
