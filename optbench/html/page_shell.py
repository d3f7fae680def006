"""The frame of every page: one file with its style and script inside, so that it opens anywhere and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable

PAGE = ("page.css", "page.js")


def shell(title: str, body: Sequence[str], beside: str = "", more: Sequence[str] = ()) -> str:
    """A page of these parts. ``more`` names further styles and scripts in the folder of the package ``beside``."""
    found = [files(__package__).joinpath(name) for name in PAGE]
    if more:
        found += [files(beside).joinpath(name) for name in more]
    style, script = (_joined(found, suffix) for suffix in (".css", ".js"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<style>{style}</style></head><body><main>{"".join(body)}</main><div id="tip" hidden></div>'
        f"<script>{script}</script></body></html>\n"
    )


def _joined(found: Sequence[Traversable], suffix: str) -> str:
    return "".join(file.read_text(encoding="utf-8") for file in found if file.name.endswith(suffix))
