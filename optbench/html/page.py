"""Pages and their parts. A page is one file with its styles and scripts, and needs no network.

Titles, facts, notes and heads of tables are plain text, which is escaped here; parts, captions and
cells are HTML.
"""

from __future__ import annotations

import os
import platform
from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from html import escape
from importlib.resources import files

from optbench import __version__

PAGE = ("page.css", "page.js")
SEPARATOR = "  ·  "


def page(title: str, body: Sequence[str], beside: str = "", more: Sequence[str] = ()) -> str:
    """A page of these parts, with further styles and scripts ``more`` of the package ``beside``."""
    style, script = (joined(suffix, beside, more) for suffix in (".css", ".js"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta '
        'name="color-scheme" content="light dark">'
        f'<style>{style}</style></head><body><main>{"".join(body)}</main><div id="tip" '
        "hidden></div>"
        f"<script>{script}</script></body></html>\n"
    )


def joined(suffix: str, beside: str = "", more: Sequence[str] = ()) -> str:
    """The styles or scripts of a page as one text."""
    found = [files(__package__) / name for name in PAGE] + [files(beside) / name for name in more]
    return "".join(file.read_text("utf-8") for file in found if file.name.endswith(suffix))


def header(title: str, *facts: str) -> str:
    return f"<header><h1>{escape(title)}</h1><p>{escape(SEPARATOR.join(facts))}</p></header>"


def footer(*facts: str) -> str:
    return f"<footer>{escape(SEPARATOR.join(filter(None, facts)))}</footer>"


def machine_facts() -> tuple[str, ...]:
    """Versions of optbench and Python, and the machine, for a footer."""
    machine = f"{platform.system()} {platform.machine()}"
    python, cores = f"Python {platform.python_version()}", f"{os.cpu_count()} cores"
    return f"optbench {__version__}", python, machine, cores


def section(title: str, *parts: str, id: str | None = None, aside: str = "") -> str:
    """Parts under a heading; ``aside`` stands beside the heading. Empty where all parts are."""
    inside = "".join(parts)
    if not inside:
        return ""
    opening = "<section>" if id is None else f'<section id="{id}">'
    return f'{opening}<div class="head"><h2>{escape(title)}</h2>{aside}</div>{inside}</section>'


def hint(words: str) -> str:
    return f'<span class="hint">{escape(words)}</span>'


def note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'


def scroll(inside: str) -> str:
    """Something wide, which scrolls by itself on a narrow screen."""
    return f'<div class="scroll" tabindex="0">{inside}</div>'


def figure(caption: str, picture: str, *below: str) -> str:
    """A picture with its caption; empty without a picture."""
    drawn = scroll(picture) + "".join(below)
    return f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>" if picture else ""


def titled_figure(title: str, picture: str, words: str) -> str:
    """A picture under a heading of its own, with a note."""
    return figure(f"<h2>{escape(title)}</h2>", picture, note(words))


def svg_image(title: str, text: str) -> str:
    """A user's picture as an image of its own, in which no script runs."""
    packed = b64encode(text.encode()).decode("ascii")
    source = f"data:image/svg+xml;base64,{packed}"
    return f'<img src="{source}" alt="{escape(title)}" style="max-width:100%">'


def colour_key(colour: str, words: str, class_: str = "key") -> str:
    """An entry of a legend."""
    return f'<span><i class="{class_}" style="background:{colour}"></i>{escape(words)}</span>'


def table(
    heads: Sequence[str], rows: Sequence[str], class_: str = "", words: Collection[int] = (0,)
) -> str:
    """A table of rows as HTML; ``words`` are the columns of text, which is aligned to the left."""
    head = ""
    for k, name in enumerate(heads):
        head += f'<th scope="col"{" class=words" if k in words else ""}>{escape(name)}</th>'
    head, body = f"<thead><tr>{head}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    return scroll(f'<table class="{class_}">{head}{body}</table>')


def text_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    class_: str = "",
    words: Collection[int] = (0,),
) -> str:
    """A table whose cells are plain text, the first of a row its head."""
    shown = [row(escape(head), list(map(escape, cells)), words) for head, *cells in rows]
    return table(heads, shown, class_, words)


def row(head: str, cells: Sequence[str], words: Collection[int] = (), class_: str = "") -> str:
    """A row of a head, which is column 0, and cells; those in the columns ``words`` are text."""
    data = "".join(
        f"<td{' class=words' if k in words else ''}>{cell}</td>" for k, cell in enumerate(cells, 1)
    )
    class_ = f' class="{class_}"' if class_ else ""
    return f'<tr{class_}><th scope="row">{head}</th>{data}</tr>'


def gap_bar(gap: float) -> str:
    """A bar below a gap, full where the gap is closed."""
    return f'<i class="gap"><i style="width:{100 * (1 - min(1.0, gap)):.1f}%"></i></i>'


def bullets(items: Sequence[str]) -> str:
    """A list of sentences."""
    return f'<ul class="words">{"".join(f"<li>{escape(item)}</li>" for item in items)}</ul>'
