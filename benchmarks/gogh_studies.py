"""The pages of the studies of gogh, from what was run of them in a workspace; writes
docs/results/gogh_paper.md, gogh_robust.md and gogh_scale.md.

    optbench run gogh_paper -n 1   (in an empty workspace; so gogh_light, gogh_robust, gogh_scale)
    python benchmarks/gogh_studies.py WORKSPACE [--commit HASH]

A policy's figures are means over the seeds that it and `oracle` have, whose number stands beside
them; a study of which some cells are missing says so at the top of its page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import page_head  # noqa: E402
from benchmarks._study_runs import StudyRun, claim_table, study_run, write_pages  # noqa: E402

# What each page says of its studies, and by what its rows are grouped.
PAGES = {
    "gogh_paper": ("gogh: the paper's claims", ("gogh_paper", "gogh_light")),
    "gogh_robust": ("gogh in other settings", ("gogh_robust",)),
    "gogh_scale": ("gogh on more GPUs and more job types", ("gogh_scale",)),
}
REFERENCE, GOGH = "oracle", "gogh"
# Violations of service that differ by more are not equal.
EQUAL_VIOLATION = 0.02
# Seconds of an epoch at the default of the problem.
EPOCH_S = 360.0


def seeds_of(run: StudyRun, target: str, label: str) -> list[int]:
    """The seeds for which a policy and the reference have a cell."""
    seeds = {seed for where, _, seed in run.cells if where == target}
    both = (label, REFERENCE)
    return sorted(s for s in seeds if all((target, each, s) in run.cells for each in both))


def interval(values: Sequence[float], digits: int = 1) -> str:
    """The mean with its 95 % interval, in per cent."""
    from optbench.evaluate.stats import estimate

    if len(values) < 2:
        return f"{100 * values[0]:.{digits}f}" if values else ""
    found = estimate([100.0 * value for value in values])
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def target_table(run: StudyRun, target: str) -> Iterator[str]:
    """One row per policy of a target."""
    yield f"### `{target}`"
    yield ""
    if not seeds_of(run, target, REFERENCE):
        yield "Not run."
        yield ""
        return
    yield (
        "| policy | seeds | energy above perfect information, % | "
        "job time below the requirement, % | gap of energy at its own shortfall, % | "
        "allocation efficiency | s per epoch, on the wall |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for label in run.labels:
        seeds = seeds_of(run, target, label)
        if not seeds:
            continue
        mine = [run.cells[target, label, seed] for seed in seeds]
        best = [run.cells[target, REFERENCE, seed] for seed in seeds]
        above = [a["energy_j"] / b["energy_j"] - 1 for a, b in zip(mine, best, strict=True)]
        per_epoch = [each["wall_s"] * EPOCH_S / each["drained_s"] for each in mine]
        efficiency = sum(each["allocation_efficiency"] for each in mine) / len(mine)
        shown = (
            label,
            str(len(seeds)),
            interval(above),
            interval([each["slo_violation"] for each in mine]),
            interval([each["gap_last_level"] for each in mine]),
            f"{efficiency:.2f}",
            f"{sum(per_epoch) / len(per_epoch):.2f}",
        )
        yield "| " + " | ".join(shown) + " |"
    yield ""


def told_first(run: StudyRun) -> Iterator[str]:
    """How gogh compares with each other policy on the cells that both have."""
    for label in run.labels:
        both = [
            (cell, run.cells[target, label, seed])
            for (target, each, seed), cell in run.cells.items()
            if each == GOGH and (target, label, seed) in run.cells
        ]
        if label == GOGH or not both:
            continue
        energy = interval([a["busy_energy_j"] / b["busy_energy_j"] - 1 for a, b in both])
        below = interval([a["slo_violation"] - b["slo_violation"] for a, b in both])
        far = abs(sum(a["slo_violation"] - b["slo_violation"] for a, b in both)) / len(both)
        words = " **No comparison at equal violation.**" if far > EQUAL_VIOLATION else ""
        yield (
            f"- gogh against {label}: energy beyond sleep {energy} %, violation {below} points of "
            f"job time, on {len(both)} instances.{words}"
        )
    yield ""


def page(name: str, workspace: Path, commit: str) -> str:
    """The text of a page."""
    title, studies = PAGES[name]
    commands = "; ".join(f"optbench run {study} -n 1" for study in studies)
    lines = page_head(title, commands)
    lines += [f"Studies run at commit {commit}; the page by `benchmarks/gogh_studies.py`.", ""]
    for study in studies:
        if not (workspace / ".optbench" / "studies" / study).is_dir():
            lines += [f"## {study}", "", "Not run.", ""]
            continue
        run = study_run(study, workspace)
        done, planned = run.report["done"], run.report["cells"]
        note = "" if done == planned else f" ({done} of {planned} cells were run)"
        lines += [f"## {study}{note}", "", run.report["question"], ""]
        lines += [*told_first(run), *claim_table(run)]
        for target in run.targets:
            lines += target_table(run, target)
    return "\n".join(lines)


if __name__ == "__main__":
    write_pages(PAGES, page)
