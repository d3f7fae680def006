"""HTML for the output cells of notebooks: results, instances and models.

A fragment brings its styles with it, each rule restricted to the fragment, and has no script: the
notebook around it keeps its looks, and the tooltips of charts are the browser's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from optbench.html import decision_page, schedule_page, summary_table
from optbench.html.captions import instance_facts, model_facts, result_line
from optbench.html.instance_page import instance_sections, pool_section
from optbench.html.page import header, joined
from optbench.model.instance import Instance
from optbench.model.result import Result
from optbench.shapes.protocol.shaped_instance import ShapedInstance

if TYPE_CHECKING:
    from optbench.model.builder import Model

FRAME = "optbench-output"
# Selectors of a page that stand for its whole body.
WHOLE = (":root", "body")
# Selectors by which notebooks say that their theme is light or dark, which need not be the
# setting of the browser: JupyterLab and VS Code.
THEMES = (
    ("[data-jp-theme-light=true]", "[data-jp-theme-light=false]"),
    (".vscode-light", ".vscode-dark"),
)
# What differs from a page: less room around, a smaller heading, and tables that do not take stripes
# and margins from the notebook.
OWN_STYLE = (
    f".{FRAME}{{padding:14px 16px;border-radius:12px}}.{FRAME} h1{{font-size:19px}}"
    f".{FRAME} section{{box-shadow:none;margin:0 0 12px}}.{FRAME} header p{{margin:0 0 12px}}"
    f".{FRAME} table{{margin:0;font-size:inherit}}.{FRAME} tr{{background:none!important}}"
    f".{FRAME} th,.{FRAME} td{{white-space:nowrap}}"
)


def fragment(parts: Sequence[str], beside: str = "", more: Sequence[str] = ()) -> str:
    """These parts with their styles, and with further styles ``more`` of the package ``beside``."""
    style = frame_style(beside, tuple(more))
    return f'<div class="{FRAME}"><style>{style}</style>{"".join(parts)}</div>'


def result_fragment(result: Result) -> str:
    """The table of objective, bound, gap and metrics, and the Gantt chart with its power; of other
    shapes the pictures that they draw.
    """
    instance = result.instance_data
    if isinstance(instance, ShapedInstance):
        return fragment(decision_page.result_parts(result, instance))
    if not isinstance(instance, Instance):
        return f"<pre>{escape(result_line(result))}</pre>"
    return fragment(
        [
            header(instance.name, *instance_facts(instance)),
            summary_table.summary(instance, [result]),
            schedule_page.schedules(instance, [result], scripted=False),
        ]
    )


def instance_fragment(instance: Instance) -> str:
    return fragment(
        [header(instance.name, *instance_facts(instance)), *instance_sections(instance)]
    )


def shaped_fragment(instance: ShapedInstance) -> str:
    return fragment(decision_page.instance_parts(instance))


def model_fragment(model: Model) -> str:
    """What is declared so far."""
    return fragment([header(model.name, "not built", *model_facts(model)), pool_section(model)])


@cache
def frame_style(beside: str, more: tuple[str, ...]) -> str:
    css = joined(".css", beside, more)
    return "".join([*scoped(css), *themes(css), OWN_STYLE])


def themes(css: str) -> Iterator[str]:
    """The colours of the notebook's theme: of two ``:root`` rules the first is the light one."""
    light, dark = re.findall(r":root\{([^}]*)\}", css)
    for is_light, is_dark in THEMES:
        yield f"{is_light} .{FRAME}{{{light}}}{is_dark} .{FRAME}{{{dark}}}"


def scoped(css: str) -> Iterator[str]:
    """The rules of a style sheet, restricted to fragments; ``@media`` may hold further rules."""
    begin = 0
    while (opening := css.find("{", begin)) >= 0:
        end = closing_brace(css, opening)
        head, inside = css[begin:opening].strip(), css[opening + 1 : end]
        if head.startswith("@media"):
            yield f"{head}{{{''.join(scoped(inside))}}}"
        else:
            yield f"{','.join(map(_within, head.split(',')))}{{{inside}}}"
        begin = end + 1


def closing_brace(css: str, opening: int) -> int:
    """The place of the brace that closes the one at ``opening``."""
    depth = 0
    for place in range(opening, len(css)):
        depth += {"{": 1, "}": -1}.get(css[place], 0)
        if depth == 0:
            return place
    raise ValueError(f"a rule of the style sheet is not closed: {css[opening : opening + 40]!r}")


def _within(selector: str) -> str:
    selector = selector.strip()
    return f".{FRAME}" if selector in WHOLE else f".{FRAME} {selector}"
