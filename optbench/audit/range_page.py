"""The page of an audit whose energies are intervals."""

from __future__ import annotations

from optbench.audit.findings import to_the_second
from optbench.audit.ranges import Ranges
from optbench.html import colours, svg
from optbench.html.axes import Axis
from optbench.html.bar_rows import Bar, bar_row
from optbench.html.page import bullets, header, page, section, text_table
from optbench.html.quantities import amount, clock

LEFT, RIGHT, TOP, ROW = 190.0, 190.0, 16.0, 40.0


def said(done: Ranges) -> list[str]:
    """The findings, in words."""
    coverage = done.pods.coverage
    low, high = 1 - done.at_low_j / done.recorded_low_j, 1 - done.at_high_j / done.recorded_high_j
    saving = f"no saving of the cluster can be told: {coverage.why_not()}"
    if coverage.enough:
        saving = (
            f"at most {100 * low:.1f} % can be saved where the record used least, "
            f"{100 * high:.1f} % where it used most; {coverage.words}"
        )
    least = f"no scheduler uses less than {amount(done.least_j, 'J')} at the same mean time"
    return [
        f"the record used {recorded(done)}, by where the pods ran",
        f"wherever they ran, {least} in the system ({to_the_second(done.sojourn_s)})",
        saving,
    ]


def recorded(done: Ranges) -> str:
    return f"{amount(done.recorded_low_j, 'J')} to {amount(done.recorded_high_j, 'J')}"


def render_ranges(done: Ranges) -> str:
    """The page as text."""
    pods = done.pods
    gpus = ", ".join(
        f"{count:,} {kind}" for kind, count in zip(pods.types, pods.counts.tolist(), strict=True)
    )
    facts = (f"{pods.num_pods:,} pods", gpus, clock(round(pods.last_s)))
    rows = [
        ("record", recorded(done)),
        ("certified least, wherever they ran", amount(done.least_j, "J")),
        ("certified least where the record used least", amount(done.at_low_j, "J")),
        ("certified least where the record used most", amount(done.at_high_j, "J")),
    ]
    energies = text_table(("what", "energy"), rows, "plain")
    unusual = bullets([str(each) for each in (*pods.report.dropped, *pods.report.warnings)])
    left_out = f"<h3>Left out, or unusual</h3>{unusual}"
    body = [
        header(f"Audit of {pods.name}", *facts),
        section("Energy of the trace", bullets(said(done)), bars(done), energies),
        section("Assumptions", bullets(done.assumptions), left_out),
    ]
    return page(f"Audit of {pods.name}", body, __package__, ("audit.css",))


def bars(done: Ranges) -> str:
    """Both intervals on one axis from 0."""
    axis = Axis(LEFT, svg.WIDTH - LEFT - RIGHT, 0.0, done.recorded_high_j)
    record, least = (done.recorded_low_j, done.recorded_high_j), (done.least_j, done.at_high_j)
    parts = []
    for k, (name, (low, high)) in enumerate((("record", record), ("certified least", least))):
        fill, value = colours.POOLS[k], f"{amount(low, 'J')} to {amount(high, 'J')}"
        certain = Bar(0.0, low, fill, "", thickness=26.0, class_="certain")
        open_part = Bar(low, high, fill, value, (name,), 26.0)
        parts.append(bar_row(name, [certain, open_part], axis, TOP + k * ROW))
    return svg.chart(parts, TOP + len(parts) * ROW, "energy as intervals")
