"""Training steps of two-layer networks by the fusion plan of the MILP, against plain CSR products
and PyTorch Geometric's default; writes docs/results/gnn_fusion.md.

    python benchmarks/gnn_fusion.py [--hidden 16,64,128] [--repeats 7]     about five minutes
    python benchmarks/gnn_fusion.py --regret                              all legal plans, longer
    python benchmarks/gnn_fusion.py --rounding                            errors of these plans anew

A step is forward and backward of the sum of squared outputs, in float32 on one thread; an optimiser
would be the same outside. Steps that are compared take turns in one process; a gain is the median
of the ratios of processor times of a turn. Coefficients of the cost model are fitted on graphs and
widths that are not judged. What was measured is kept in docs/results/raw/gnn_fusion.json, from
which the page is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from benchmarks._fusion_cases import (  # noqa: E402
    PLAIN_CSR,
    PlainCsr,
    PublishedStep,
    case_of,
    dense_features,
    features_of,
    graph_case,
    taken_ms,
)
from benchmarks._fusion_page import page  # noqa: E402
from benchmarks._fusion_rounding import errors_of  # noqa: E402

PAGE = RESULTS / "gnn_fusion.md"
RAW = RESULTS / "raw" / "gnn_fusion.json"
JUDGED = (
    *("cora", "citeseer", "power,nodes=25000", "mesh,nodes=25000"),
    *("community,nodes=50000", "power,nodes=100000"),
)
# Graphs and hidden widths of the fit; none of them is judged.
FITTED = (
    *(("community,nodes=8000,features=64", 40), ("hubs,nodes=15000,features=256", 48)),
    *(("grid,nodes=20000", 96), ("molecules,nodes=4000,features=2000", 32)),
    ("community,nodes=30000,features=96", 24),
)
FIT_REPEATS, FIT_ROUNDS = 3, 2
REGRET_GRAPHS = ("cora", "citeseer", "power,nodes=25000", "community,nodes=50000")
REGRET_HIDDEN, REGRET_REPEATS = (16, 64), 2
# The best plans of the first measurement, and the turns of the second: with few, the least of
# several medians is below all true ones.
FINALISTS, FINAL_TURNS = 8, 31
# Attention with a value per arc and column takes long.
GAT_HIDDEN, GAT_REPEATS, PYG_REPEATS, GAT_NODES = (16, 64), 2, 2, 30_000
# SAGE sums no rows of features in a step with one of these.
FIT_FOR_SPARSE = {"aggregated_before", "aggregated_last1", "aggregated_last_epilogue1"}


def fitted(network: str) -> Any:
    """Coefficients of a network's kernels on the graphs of the fit."""
    from optbench.gnn.kernels.kernel_rates import common_rates

    cases = [case_of(spec, network, hidden) for spec, hidden in FITTED]
    return common_rates(cases, cases[0].data.devices[0], FIT_REPEATS, FIT_ROUNDS)


def rates_from(raw: dict[str, Any], case: Any) -> Any:
    """Coefficients that were kept."""
    from optbench.gnn.kernels.fusion_plan import KernelRates

    parts = {stem: tuple(each) for stem, each in raw["rates"][case.widths.kind].items()}
    return KernelRates(case.data.devices[0], parts=parts)


def planned(case: Any, rates: Any) -> tuple[frozenset[str], float]:
    """The MILP's plan, and its modelled milliseconds."""
    from optbench.gnn.kernels.fusion_plan import best_fusions, fusion_names

    choice = best_fusions(case.data, rates)
    return fusion_names(case.data.fusions, choice.chosen), 1e3 * choice.seconds


def measured_row(spec: str, network: str, hidden: int, repeats: int, rates: Any) -> dict[str, Any]:
    """Measure a network on a graph with dense features."""
    from optbench.gnn.kernels.kernel_rates import TimedStep

    case, dense = case_of(spec, network, hidden), dense_features(spec)
    fused, modelled_ms = planned(case, rates)
    step = TimedStep(case, fused, dense)
    unfused = TimedStep(case, frozenset() if network == "gat" else PLAIN_CSR, dense)
    # GAT has no form by CSR products: its base is attention with a value per arc and column.
    base = unfused if network == "gat" else PlainCsr(case, step.network, dense)
    steps = [PublishedStep(case, step.network, dense), base, unfused, step]
    most = GAT_REPEATS if network == "gat" else repeats
    found = taken_ms(steps, [min(PYG_REPEATS, most), most, most, most])
    pyg, plain, same, plan = (np.array(each) for each in found)
    expected = steps[0].forward().detach()  # type: ignore[union-attr]
    error = float((step.network(step.inputs, fused).detach() - expected).norm() / expected.norm())
    return {
        "graph": spec,
        "network": network,
        "hidden": hidden,
        "repeats": most,
        "nodes": case.data.graph.num_nodes,
        "features": case.widths.features,
        "pyg_ms": float(np.median(pyg)),
        "base_ms": float(np.median(plain)),
        "same_products_ms": float(np.median(same)),
        "plan_ms": float(np.median(plan)),
        "modelled_ms": modelled_ms,
        "gain": float(np.median(plain / plan)),
        "gain_same_products": float(np.median(same / plan)),
        "gain_pyg": float(np.median(pyg) / np.median(plan)),
        "pyg_error": error,
        "plan": sorted(fused),
    }


def sparse_row(row: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Measure dense against sparse features with one plan."""
    from optbench.gnn.kernels.kernel_rates import TimedStep

    spec, fused = row["graph"], frozenset(row["plan"])
    case, given = case_of(spec, row["network"], row["hidden"]), features_of(spec)
    if row["network"] == "sage" and not fused & FIT_FOR_SPARSE:
        fused = (fused - {"spmm1", "one_product1"}) | {"aggregated_last1"}
    steps = [TimedStep(case, fused, dense_features(spec)), TimedStep(case, fused, given)]
    dense, sparse = (np.array(each) for each in taken_ms(steps, [repeats] * 2))
    return {
        **{name: row[name] for name in ("graph", "network", "hidden")},
        "share": given.nnz / (given.shape[0] * given.shape[1]),
        "dense_ms": float(np.median(dense)),
        "sparse_ms": float(np.median(sparse)),
        "ratio": float(np.median(dense / sparse)),
    }


def rounding_row(row: dict[str, Any]) -> dict[str, Any]:
    """Errors of a measured plan in float32."""
    spec, network, hidden = row["graph"], row["network"], row["hidden"]
    found = errors_of(case_of(spec, network, hidden), frozenset(row["plan"]), dense_features(spec))
    return {"graph": spec, "network": network, "hidden": hidden, **found}


def regret_row(spec: str, network: str, hidden: int, rates: Any) -> dict[str, Any]:
    """Measure every legal plan, and the best ones again with the chosen one in turns."""
    from optbench.gnn.kernels.fusion_plan import fusion_names, legal_plans
    from optbench.gnn.kernels.kernel_rates import TimedStep, plan_seconds

    case, dense = case_of(spec, network, hidden), dense_features(spec)
    chosen, modelled_ms = planned(case, rates)
    plans = [
        np.array(each, dtype=np.int64)
        for each in legal_plans(case.data.operators, case.data.fusions)
    ]
    names = [fusion_names(case.data.fusions, each) for each in plans]
    modelled = np.array([plan_seconds(case.data, each, rates) for each in plans])
    first = np.array([TimedStep(case, each, dense).seconds(REGRET_REPEATS) for each in names])
    best = [names[k] for k in np.argsort(first)[:FINALISTS] if names[k] != chosen]
    steps = [TimedStep(case, each, dense) for each in (chosen, *best)]
    again = [float(np.median(each)) for each in taken_ms(steps, [FINAL_TURNS] * len(steps))]
    ratio = modelled / first
    return {
        "graph": spec,
        "network": network,
        "hidden": hidden,
        "plans": len(plans),
        "finalists": FINALISTS,
        "turns": FINAL_TURNS,
        "chosen_ms": again[0],
        "best_ms": min(again),
        "regret": again[0] / min(again) - 1,
        "median_regret_of_all": float(np.median(first) / first.min() - 1),
        "modelled_ms": modelled_ms,
        "ratio_quartiles": [float(each) for each in np.quantile(ratio, [0.25, 0.5, 0.75])],
        "best": sorted(([chosen, *best])[int(np.argmin(again))]),
        "chosen": sorted(chosen),
    }


def measure_main(raw: dict[str, Any], widths: list[int], repeats: int) -> None:
    """Fit, measure the tables of all widths, and write the page after each."""
    raw["rates"], raw["load"] = {}, os.getloadavg()[0]
    raw["rows"], raw["sparse"], raw["errors"] = [], [], []
    for network in ("gcn", "sage", "gat"):
        raw["rates"][network] = fitted(network).parts
        print(f"fitted {network}", flush=True)
    for hidden in widths:
        for network in ("gcn", "sage", "gat"):
            for spec in JUDGED:
                large = graph_case(spec)[0].graph.num_nodes > GAT_NODES
                if network == "gat" and (hidden not in GAT_HIDDEN or large):
                    continue
                rates = rates_from(raw, case_of(spec, network, hidden))
                row = measured_row(spec, network, hidden, repeats, rates)
                raw["rows"].append(row)
                print(hidden, network, spec, f"{row['gain']:.2f}", row["plan"], flush=True)
                if spec in ("cora", "citeseer"):
                    raw["sparse"].append(sparse_row(row, repeats))
                raw["errors"].append(rounding_row(row))
        raw["load_after"] = os.getloadavg()[0]
        write(raw)


def write(raw: dict[str, Any]) -> None:
    """Keep what was measured, and write the page from it."""
    RAW.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    head = page_head("Operator fusion of GNN training", "python benchmarks/gnn_fusion.py")
    fit = [f"{spec} ({hidden})" for spec, hidden in FITTED]
    PAGE.write_text("\n".join(page(raw, head, fit)).rstrip() + "\n", encoding="utf-8")


def measure_regret(raw: dict[str, Any]) -> None:
    """Measure every legal plan of small cases by the rates that were kept."""
    raw["regret"] = []
    for spec in REGRET_GRAPHS:
        for hidden in REGRET_HIDDEN:
            for network in ("gcn", "sage", "gat"):
                if network == "gat" and graph_case(spec)[0].graph.num_nodes > 5000:
                    continue
                rates = rates_from(raw, case_of(spec, network, hidden))
                raw["regret"].append(regret_row(spec, network, hidden, rates))
                print(raw["regret"][-1], flush=True)
                write(raw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--hidden", default="16,64,128")
    parser.add_argument("--regret", action="store_true")
    parser.add_argument("--rounding", action="store_true")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    raw: dict[str, Any] = json.loads(RAW.read_text(encoding="utf-8")) if RAW.exists() else {}
    if args.rounding:
        raw["errors"] = [rounding_row(row) for row in raw["rows"]]
        write(raw)
    elif args.regret:
        measure_regret(raw)
    else:
        measure_main(raw, [int(each) for each in args.hidden.split(",")], args.repeats)


if __name__ == "__main__":
    main()
