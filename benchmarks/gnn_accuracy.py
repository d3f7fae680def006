"""Accuracies of networks trained by one process without fusions, and by two processes with
everything; writes docs/results/gnn_accuracy.md and docs/results/raw/gnn_accuracy.jsonl.

    python benchmarks/gnn_accuracy.py [--seeds 10] [--epochs 200] [--page-only]

The seeds (of weights and of dropout) are the same on both sides, so that accuracies are paired.
Rows that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optbench.evaluate.hypothesis_tests import EquivalenceTest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from benchmarks._gnn_trainings import (  # noqa: E402
    NETWORKS,
    PUBLIC,
    LabelledData,
    best_plan,
    drawn_data,
    instance_of,
    job_of,
    modelled,
    nodes_of,
    public_data,
    spectral_parts,
    trained,
)

PAGE, RAW = RESULTS / "gnn_accuracy.md", RESULTS / "raw" / "gnn_accuracy.jsonl"
PARTING = RESULTS / "raw" / "gnn_loss_parting.json"
DRAWN = {
    "community": "graph=community,nodes=2000",
    "molecules": "graph=molecules,nodes=3000",
}
ONE, EVERYTHING = "one process", "two processes"
# Percentage points; the level of the tests; what mis_spectral may take; repeats of a timed plan.
MARGIN, LEVEL, PARTITION_S, FIT_REPEATS = 1.0, 0.05, 3.0, 2
# Relative differences of final losses that the page names.
LOSS_APART = 1e-3


@dataclass(frozen=True)
class AccuracyRow:
    """One training: accuracies are shares; ``fusions`` are those executed."""

    data: str
    network: str
    side: str
    seed: int
    epochs: int
    test: float
    validation: float
    loss: float
    sent_mb: float
    cut_edges: int
    fusions: str

    @property
    def key(self) -> tuple[Any, ...]:
        return self.data, self.network, self.side, self.seed, self.epochs


def rows_so_far() -> list[AccuracyRow]:
    if not RAW.exists():
        return []
    lines = RAW.read_text(encoding="utf-8").splitlines()
    return list(
        {row.key: row for row in (AccuracyRow(**json.loads(each)) for each in lines)}.values()
    )


def data_of(name: str) -> tuple[LabelledData, str]:
    if name in PUBLIC:
        return public_data(name), f"graph={name}"
    return drawn_data(name, DRAWN[name]), DRAWN[name]


def run_data(name: str, networks: Sequence[str], seeds: Sequence[int], epochs: int) -> None:
    """Train what is missing of a data set: one side after the other, all networks and seeds."""
    known = {row.key for row in rows_so_far()}
    for side in (ONE, EVERYTHING):
        wanted = [
            (network, seed)
            for network in networks
            for seed in seeds
            if (name, network, side, seed, epochs) not in known
        ]
        if wanted:
            run_side(name, side, wanted, epochs)


def run_side(name: str, side: str, wanted: list[tuple[str, int]], epochs: int) -> None:
    """Train networks with seeds by the processes of a side, and append their rows."""
    data, spec = data_of(name)
    n, features = data.features.shape
    device = np.zeros(n, dtype=np.int64)
    if side == EVERYTHING:
        device = spectral_parts(instance_of(f"{spec},parts=2,imbalance=0.03"), PARTITION_S)
    cut = int((device[data.graph.tail] != device[data.graph.head]).sum())
    kinds = dict.fromkeys(network for network, _ in wanted)
    plans = {kind: plan_of(side, spec, kind, name, features, data.classes) for kind in kinds}
    others: dict[str, Any] = {"epochs": epochs, "sparse_features": name in PUBLIC}
    devices = 1 if side == ONE else 2
    jobs = [
        (
            job_of(kind, data.classes, devices, seed=seed, fusions=plans[kind], **others),
            nodes_of(data, device),
        )
        for kind, seed in wanted
    ]
    with tempfile.TemporaryDirectory(prefix="optbench-accuracy-") as folder:
        found = trained(Path(folder), jobs)
    for (network, seed), result in zip(wanted, found, strict=True):
        row = AccuracyRow(
            name,
            network,
            side,
            seed,
            epochs,
            result.accuracy["test"],
            result.accuracy["validation"],
            result.losses[-1],
            result.sent_mb_per_step,
            cut,
            ", ".join(plans[network]) or "none",
        )
        with RAW.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(row)) + "\n")
    print(name, side, len(found), "trainings", flush=True)


def plan_of(
    side: str, spec: str, network: str, name: str, features: int, classes: int
) -> tuple[str, ...]:
    """The fusions of a side; sparse features are not summed in every step."""
    from optbench.gnn.kernels.kernel_names import FIT_FOR_SPARSE, plain_csr

    kind: Any = network
    sparse = network == "sage" and name in PUBLIC
    if side == ONE:
        return ("aggregated_last1", "spmm2") if sparse else plain_csr(kind, 2)
    instance = modelled(spec, network, features, classes, ",parts=2,imbalance=0.03")
    best = best_plan(instance, network, FIT_REPEATS)
    if sparse and not FIT_FOR_SPARSE.intersection(best):
        rest = [each for each in best if not each.endswith("1")]
        return tuple(sorted({*rest, "aggregated_last_epilogue1"}))
    return best


@dataclass(frozen=True)
class AccuracyCell:
    """Paired accuracies of a cell, in points."""

    data: str
    network: str
    one: list[float]
    two: list[float]
    loss_apart: float
    apart_seed: int
    sent_mb: float
    fusions: str


def cells_of(rows: Sequence[AccuracyRow]) -> list[AccuracyCell]:
    """The cells with two pairs or more."""
    found = {(row.data, row.network, row.side, row.seed): row for row in rows}
    out = []
    for name, network in dict.fromkeys((row.data, row.network) for row in rows):
        seeds = sorted(
            seed
            for data, kind, side, seed in found
            if (data, kind, side) == (name, network, ONE)
            and (name, network, EVERYTHING, seed) in found
        )
        if len(seeds) > 1:
            pairs = [
                [found[name, network, side, seed] for seed in seeds] for side in (ONE, EVERYTHING)
            ]
            one, two = ([100 * row.test for row in side] for side in pairs)
            apart = [abs(a.loss / b.loss - 1) for a, b in zip(*pairs, strict=True)]
            most = int(np.argmax(apart))
            worst, first = (apart[most], seeds[most]), pairs[1][0]
            out.append(AccuracyCell(name, network, one, two, *worst, first.sent_mb, first.fusions))
    return out


def page(rows: Sequence[AccuracyRow]) -> list[str]:
    """The page of these rows."""
    from optbench.evaluate.hypothesis_tests import equivalence_test, paired_t_test

    cells = cells_of(rows)
    tests = [equivalence_test(cell.two, cell.one, MARGIN) for cell in cells]
    adjusted = corrected(tests)
    plain = [paired_t_test(cell.two, cell.one) for cell in cells]
    pairs, epochs = min(len(cell.one) for cell in cells), max(row.epochs for row in rows)
    lines = page_head("Accuracy of distributed GNN training", "python benchmarks/gnn_accuracy.py")
    lines += [
        f"Test accuracies in points after {epochs} epochs, means of {pairs} seeds (± standard "
        "deviation): one process with plain CSR (a GAT without fusions) against two processes with "
        "the partition of `mis_spectral`, the best fusion plan with measured factors, and overlap. "
        "Cora and CiteSeer: the public split (20 nodes of a class, 500, 1,000), rows of features "
        "divided by their sums, stored as sparse matrices on both sides (SAGE multiplies before it "
        "sums in its first layer, therefore). `community` and `molecules`: drawn graphs, 32 drawn "
        "features, labels by a teacher (7 random combinations of features averaged twice over "
        "neighbours), split alike. Two layers, hidden width 16 (GAT: 8 heads of 8), dropout 0.5 of "
        "hidden rows (and, in GAT, of attention; none of the features), Adam with rate 0.01 (GAT "
        "0.005), weight decay 5e-4, the last epoch counts. Published accuracies on the public "
        "split, with dropout of the features too: GCN 81.5 and 70.3 (Kipf and Welling), GAT 83.0 "
        "and 72.5 (Veličković and others).",
        "",
        headline(cells, tests, adjusted),
        "",
        "Two one-sided paired t-tests, Holm-corrected over all cells of the grid, those without a "
        f"test with p = 1; level {LEVEL:g}. The paper's t-test stands beside it; that it finds no "
        "difference proves nothing. Largest difference of the means: "
        f"{max(abs(each.difference) for each in plain):.2f} points. Weights and masks of dropout "
        "depend on the seed and on global numbers of nodes and arcs alone. The column of losses is "
        "the largest relative difference of the final losses of a pair. " + outliers(cells),
        "",
        "| data | network | one process | two processes | difference (95 %) | pairs that differ "
        "| TOST p | Holm p | equivalent | t-test p | loss apart | MB sent per epoch | fusions |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    for cell, test, p, paper in zip(cells, tests, adjusted, plain, strict=True):
        differ = sum(a != b for a, b in zip(cell.one, cell.two, strict=True))
        columns = [
            cell.data,
            cell.network,
            *(f"{np.mean(side):.2f} ± {np.std(side, ddof=1):.2f}" for side in (cell.one, cell.two)),
            f"{paper.difference:+.2f} ({paper.low:+.2f} to {paper.high:+.2f})",
            f"{differ} of {len(cell.one)}",
            *(("-", "-", "identical") if test.identical else _verdict(test.p_value, p)),
            f"{paper.p_value:.2f}",
            f"{cell.loss_apart:.0e}",
            f"{cell.sent_mb:.3g}",
            cell.fusions,
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return lines + causes()


def _verdict(plain: float, adjusted: float) -> tuple[str, str, str]:
    return f"{plain:.1e}", f"{adjusted:.1e}", "yes" if adjusted < LEVEL else "**no**"


def grid() -> list[tuple[str, str]]:
    """The cells that were declared, whatever has run."""
    return [(name, network) for name in (*PUBLIC, *DRAWN) for network in NETWORKS]


def corrected(tests: Sequence[EquivalenceTest]) -> list[float]:
    """Holm's p-values in the family of the grid; cells without a test count with p = 1."""
    from optbench.evaluate.hypothesis_tests import holm

    p_values = [1.0 if each.identical else each.p_value for each in tests]
    missing = [1.0] * (len(grid()) - len(tests))
    return list(holm([*p_values, *missing]))[: len(tests)]


def headline(
    cells: Sequence[AccuracyCell], tests: Sequence[EquivalenceTest], adjusted: Sequence[float]
) -> str:
    """How many cells of the grid are tested, identical and missing."""
    tested = [p for each, p in zip(tests, adjusted, strict=True) if not each.identical]
    within, same = sum(p < LEVEL for p in tested), len(tests) - len(tested)
    known = {(cell.data, cell.network) for cell in cells}
    missing = [f"{name} {network}" for name, network in grid() if (name, network) not in known]
    words = f"**Of the {len(grid())} cells of the grid, {len(tested)} were tested and {within} of "
    words += f"these are equivalent within one point; {same} are identical in all pairs, not "
    words += f"tested; {len(missing)} are missing"
    return words + (f": {', '.join(missing)}.**" if missing else ".**")


def outliers(cells: Sequence[AccuracyCell]) -> str:
    """Cells of which a final loss is further apart than ``LOSS_APART``."""
    far = [each for each in cells if each.loss_apart > LOSS_APART]
    if not far:
        return f"It is nowhere above {LOSS_APART:.0e}."
    named = ", ".join(
        f"{each.data} {each.network}, seed {each.apart_seed} ({each.loss_apart:.1%})"
        for each in far
    )
    looked = {(each["data"], each["network"], each["seed"]) for each in known_partings()}
    others = sum((each.data, each.network, each.apart_seed) not in looked for each in far)
    text = f"It is above {LOSS_APART:.0e} in: {named}."
    if others < len(far):
        text += " Why is shown below the table."
    return text + (f" The cause of {others} of these was not looked into." if others else "")


def known_partings() -> list[dict[str, Any]]:
    """What benchmarks/gnn_loss_parting.py has found."""
    found: list[dict[str, Any]] = []
    if PARTING.exists():
        found = json.loads(PARTING.read_text(encoding="utf-8"))
    return found


def causes() -> list[str]:
    """Why final losses differ, a row per pair that was looked into."""
    if not known_partings():
        return []
    lines = [
        "",
        "## Final losses that differ",
        "",
        "`python benchmarks/gnn_loss_parting.py` repeats such a pair in one process and in two, by "
        "random partitions and two fusion plans. In float64 all runs of a row end with losses that "
        "are as far apart as the first column of figures says (they are added in units of 2⁻³²), "
        "so that masks and orders are right. In float32 some runs depart from float64, by rounding "
        "at the kink of ReLU (in a GAT of LeakyReLU): up to one step gradients of two runs agree, "
        "in that step they do not, and one value before the kink, beside 0, comes out on the other "
        "side. With this one value on the other side, the gradients of one process in float64 are "
        "those of the departed run (last column). The steps that follow let the trainings drift.",
        "",
        "| data | network | seed | float64 runs: losses apart | float32 runs that depart "
        "| furthest at the end | step | gradients apart, step before | in the step "
        "| value before the kink | standard deviation | departed run from float64 "
        "| with the other side |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in known_partings():
        exact, single = (
            [run for run in each["runs"] if run["precision"] == precision]
            for precision in ("float64", "float32")
        )
        away = [run["final_apart"] for run in single if run["departs"] is not None]
        cells = [each["data"], each["network"], str(each["seed"])]
        cells += [f"{max(run['final_apart'] for run in exact):.0e} ({len(exact)})"]
        cells += [f"{len(away)} of {len(single)}", f"{max(away, default=0.0):.1%}"]
        found = each.get("parting")
        names = ("before_apart", "step_apart", "value", "deviation", "other_from_exact")
        figures = [*names, "other_from_changed"]
        cells += [str(found["step"])] if found else ["-"]
        cells += [f"{found[name]:.1e}" if found else "-" for name in figures]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--data", default=",".join((*PUBLIC, *DRAWN)))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if not args.page_only:
        RAW.parent.mkdir(parents=True, exist_ok=True)
        for name in args.data.split(","):
            run_data(name, args.networks.split(","), range(args.seeds), args.epochs)
    lines = page(rows_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
