"""The page of an audit whose energies are intervals."""

from __future__ import annotations

from html import escape

from optbench.audit.audit_page import listed, section, table
from optbench.audit.ranges import Ranges
from optbench.html import colours, svg
from optbench.html.axis_scale import amount, clock
from optbench.html.page_shell import shell

WIDTH, LEFT, RIGHT, TOP, ROW = 1200.0, 190.0, 190.0, 16.0, 40.0


def said(done: Ranges) -> list[str]:
    """The findings, in words."""
    coverage = done.pods.coverage
    low, high = 1 - done.at_low_j / done.recorded_low_j, 1 - done.at_high_j / done.recorded_high_j
    saving = (
        f"at most {100 * low:.1f} % can be saved where the record used least, {100 * high:.1f} % where it used most; "
        f"{coverage.words}"
    )
    return [
        f"the record used {amount(done.recorded_low_j, 'J')} to {amount(done.recorded_high_j, 'J')}, by where the pods ran",
        f"wherever they ran, no scheduler uses less than {amount(done.least_j, 'J')} at the same mean time in the system "
        f"({clock(round(done.sojourn_s))})",
        saving if coverage.enough else f"no saving of the cluster can be told: {coverage.why_not()}",
    ]


def render_ranges(done: Ranges) -> str:
    """One file that opens anywhere."""
    pods = done.pods
    gpus = ", ".join(f"{count:,} {kind}" for kind, count in zip(pods.types, pods.counts.tolist(), strict=True))
    facts = f"{pods.num_pods:,} pods  ·  {gpus}  ·  {clock(round(pods.last_s))}"
    rows = [
        (("record", f"{amount(done.recorded_low_j, 'J')} to {amount(done.recorded_high_j, 'J')}"), ""),
        (("certified least, wherever they ran", amount(done.least_j, "J")), ""),
        (("certified least where the record used least", amount(done.at_low_j, "J")), ""),
        (("certified least where the record used most", amount(done.at_high_j, "J")), ""),
    ]
    left_out = listed([str(each) for each in (*pods.report.dropped, *pods.report.warnings)])
    body = [
        f"<header><h1>Audit of {escape(pods.name)}</h1><p>{escape(facts)}</p></header>",
        section("What the trace allows to say", listed(said(done)), bars(done), table(("what", "energy"), rows)),
        section("What the figures rest on", listed(done.assumptions), "<h3>Left out, or odd</h3>", left_out),
    ]
    return shell(f"Audit of {pods.name}", body, __package__, ("audit.css",))


def bars(done: Ranges) -> str:
    """Both intervals on one axis from 0."""
    top = done.recorded_high_j
    spans = (
        ("record", done.recorded_low_j, done.recorded_high_j, colours.POOLS[0]),
        ("certified least", done.least_j, done.at_high_j, colours.POOLS[1]),
    )
    parts = []
    for k, (name, low, high, colour) in enumerate(spans):
        y, x = TOP + k * ROW, LEFT + (WIDTH - LEFT - RIGHT) * low / top
        width = max(2.0, (WIDTH - LEFT - RIGHT) * (high - low) / top)
        parts.append(svg.tag("rect", x=LEFT, y=y, width=x - LEFT, height=ROW - 14, fill=colour, opacity=0.35))
        parts.append(svg.tag("rect", svg.title([name]), x=x, y=y, width=width, height=ROW - 14, fill=colour))
        parts.append(svg.text(LEFT - 12, y + 17, name, class_="pool"))
        parts.append(svg.text(x + width + 8, y + 17, f"{amount(low, 'J')} to {amount(high, 'J')}", class_="cause-value"))
    box = f"0 0 {WIDTH:g} {TOP + len(spans) * ROW:g}"
    return svg.tag("svg", "".join(parts), viewBox=box, class_="chart", role="img", aria_label="energy as intervals")
