"""How objects are shown and saved: a short repr, HTML in a notebook, a page, files.

The functions that do this stand in layers above the classes that they serve. They are therefore
named by strings in one table and imported when they are used; `tests/test_rendering.py` resolves
every string. What a notebook shows is a fragment of HTML with styles of its own and without a
script: a frame would need a fixed height, and saved notebooks drop it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from optbench.errors import ParameterError
from optbench.files import replacing

# By kind of object: ``line(thing)`` is its repr, ``fragment(thing)`` the HTML of an output cell,
# ``page(thing)`` a whole page, and ``files(thing, path, **options)`` texts by path, in the order in
# which they are written.
RENDERERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "result": {
            "line": "optbench.html.captions:result_line",
            "fragment": "optbench.html.notebook:result_fragment",
            "page": "optbench.html.schedule_page:page_of",
            "files": "optbench.model.files.result_json:result_files",
        },
        "instance": {
            "line": "optbench.html.captions:instance_line",
            "fragment": "optbench.html.notebook:instance_fragment",
            "page": "optbench.html.instance_page:page_of_instance",
            "files": "optbench.formats.format_registry:instance_files",
        },
        "shaped_instance": {
            "line": "optbench.html.decision_page:shaped_line",
            "fragment": "optbench.html.notebook:shaped_fragment",
            "page": "optbench.html.decision_page:page_of_shaped",
            "files": "optbench.plugins.shape_files:shaped_files",
        },
        "model": {
            "line": "optbench.html.captions:model_line",
            "fragment": "optbench.html.notebook:model_fragment",
            "page": "optbench.html.instance_page:page_of_model",
            "files": "optbench.formats.format_registry:model_files",
        },
        "front": {
            "line": "optbench.fronts.front_page:front_line",
            "fragment": "optbench.fronts.front_page:front_fragment",
            "page": "optbench.fronts.front_page:render_front",
            "files": "optbench.fronts.front_page:front_files",
        },
        "simulation": {"line": "optbench.html.captions:simulation_line"},
        "process_simulation": {"line": "optbench.html.captions:process_line"},
    }
)


class ShortRepr:
    """An object whose repr is one line: ``class Result(ShortRepr, kind="result")``."""

    kind_shown: ClassVar[str]

    def __init_subclass__(cls, kind: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if kind is not None:
            cls.kind_shown = kind

    def __repr__(self) -> str:
        return str(rendered(self, "line"))


class Rendered(ShortRepr):
    """An object with a short repr, HTML for notebooks, a page and files."""

    def _repr_html_(self) -> str:
        return str(rendered(self, "fragment"))

    def html(self, path: str | Path) -> None:
        """Write a page: one file that needs no network."""
        target = checked_path(path)
        write(target, rendered(self, "page"))

    def save(self, path: str | Path) -> None:
        """Write the JSON document of the command line."""
        save(self, path)


class RenderedInstance(Rendered):
    """An object that is saved as an instance."""

    def save(self, path: str | Path, format: str = "optbench") -> None:
        """Write an instance file, as `optbench convert --to FORMAT` does."""
        save(self, path, format=format)


def renderer(kind: str, purpose: str) -> Any:
    """The function of a kind of object for a purpose."""
    return resolve(RENDERERS[kind][purpose])


def resolve(reference: str) -> Any:
    """The object that ``"package.module:name"`` names; its module may stand in a higher room."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def rendered(thing: ShortRepr, purpose: str) -> Any:
    return renderer(thing.kind_shown, purpose)(thing)


def save(thing: ShortRepr, path: str | Path, **options: Any) -> None:
    """Write the files of an object, after all paths have been checked."""
    target = checked_path(path)
    if target.suffix.lower() in (".html", ".htm"):
        raise ParameterError(
            f"{str(target)!r}: save(...) writes data, not a page; html({str(target)!r}) writes the "
            "page"
        )
    texts = renderer(thing.kind_shown, "files")(thing, target, **options)
    for file in texts:
        checked_path(file)
    for file, text in texts.items():
        write(file, text)


def checked_path(path: str | Path) -> Path:
    """The path of a file that may be written; its folder must exist."""
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"the path is {path!r}; give the path of a file, such as 'run.json'")
    target = Path(path)
    with _explained(target):
        if target.is_dir():
            raise ParameterError(f"{str(target)!r} is a folder; give the path of a file")
        if not target.parent.is_dir():
            raise ParameterError(
                f"{str(target)!r}: there is no folder {str(target.parent)!r}; make it first"
            )
    return target


def write(target: Path, text: str) -> None:
    """Write a file whole or not at all; a pipe or a device is written and not replaced."""
    with _explained(target):
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        with replacing(target) as fresh:
            fresh.write_text(text, encoding="utf-8")


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Name the file that the operating system refuses."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ParameterError(f"{str(target)!r} cannot be written: {reason}") from None
