"""The pages of the studies of HyperScale, from what was run of them in a workspace; writes
docs/results/hyperscale_paper.md, hyperscale_scale.md and hyperscale_dynamic.md.

    optbench run hyperscale_paper --jobs 1   (in an empty workspace, on a quiet machine; all three)
    python benchmarks/hyperscale_studies.py WORKSPACE [--commit HASH] [--pages hyperscale_paper]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import page_head  # noqa: E402
from benchmarks._study_runs import StudyRun, claim_table, study_run, write_pages  # noqa: E402


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, its metric, and how a mean over seeds is written."""

    title: str
    metric: str
    style: str
    factor: float = 1.0


CUT = Column("cut edges", "cut_edges", ",.0f")
STEP = Column("step, estimated, ms", "step_s", ".2f", 1e3)
TITLES = {
    "hyperscale_paper": "HyperScale: the paper's claims",
    "hyperscale_scale": "HyperScale on growing graphs and clusters",
    "hyperscale_dynamic": "Partitions of graphs that change",
}
COLUMNS = {
    "hyperscale_paper": (
        Column("step, measured, ms", "measured.step_s", ".2f", 1e3),
        STEP,
        CUT,
        Column("exchanged, MB per step", "exchanged_mb", ".3f"),
        Column("imbalance of work", "work_imbalance", ".2f"),
    ),
    "hyperscale_scale": (
        STEP,
        Column("energy, estimated, J per step", "energy_j", ".3g"),
        Column("communication, estimated, ms", "talk_s", ".2f", 1e3),
        CUT,
        Column("imbalance of work", "work_imbalance", ".2f"),
    ),
    "hyperscale_dynamic": (
        CUT,
        Column("nodes that moved", "moved_nodes", ",.0f"),
        Column("imbalance", "imbalance", ".3f"),
        Column("s of the solver", "wall_s", ".2f"),
    ),
}


def shown(cells: list[Mapping[str, float]], column: Column) -> str:
    """The mean over seeds, or nothing where a cell has no such figure."""
    values = [cell[column.metric] for cell in cells if column.metric in cell]
    if len(values) < len(cells):
        return ""
    return format(column.factor * sum(values) / len(values), column.style)


def target_table(run: StudyRun, target: str) -> Iterator[str]:
    """One row per solver of a problem."""
    columns = COLUMNS[run.name]
    yield f"### `{target}`"
    yield ""
    yield "| solver | seeds | " + " | ".join(column.title for column in columns) + " |"
    yield "| --- |" + " ---: |" * (1 + len(columns))
    for label in run.labels:
        cells = [cell for (t, name, _), cell in run.cells.items() if (t, name) == (target, label)]
        if cells:
            values = [shown(cells, column) for column in columns]
            yield "| " + " | ".join((label, str(len(cells)), *values)) + " |"
    yield ""


def page(name: str, workspace: Path, commit: str) -> str:
    """The text of a page."""
    lines = page_head(TITLES[name], f"optbench run {name} --jobs 1", "on the wall")
    lines += [f"Run at commit {commit}; the page by `benchmarks/hyperscale_studies.py`.", ""]
    run = study_run(name, workspace)
    done, planned = run.report["done"], run.report["cells"]
    failed = run.report["failed"]
    words = f"{done} of {planned} cells were run, {failed or 'none'} failed."
    lines += [run.report["question"], "", words, "", *claim_table(run)]
    for target in run.targets:
        lines += target_table(run, target)
    return "\n".join(lines)


if __name__ == "__main__":
    write_pages(TITLES, page)
