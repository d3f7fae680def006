"""The page of benchmarks/gnn_fusion.py from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

GOAL, WITHIN = 1.5, 1e-5
GOAL_WIDTHS = (16, 64)
STEPS = ("plan", "plain")


def page(raw: dict[str, Any], head: list[str], fit: list[str]) -> list[str]:
    """All lines."""
    lines = [*head, *_summary(raw), ""]
    for hidden in sorted({row["hidden"] for row in raw["rows"]}):
        lines += _table(raw["rows"], hidden)
    return [*lines, *_sparse(raw["sparse"]), *_errors(raw["errors"]), *_model(raw, fit)]


def _gains(rows: Sequence[dict[str, Any]], name: str, widths: Sequence[int]) -> float:
    """The mean over GCN and SAGE."""
    kept = [row[name] for row in rows if row["network"] != "gat" and row["hidden"] in widths]
    return float(np.mean(kept)) if kept else float("nan")


def _summary(raw: dict[str, Any]) -> list[str]:
    rows, widths = raw["rows"], sorted({row["hidden"] for row in raw["rows"]})
    goal = [each for each in widths if each in GOAL_WIDTHS]
    reached = _gains(rows, "gain", goal)
    worst = max(
        each[f"{biases_of(each)} plan {name}"]
        for each in raw["errors"]
        for name in ("outputs", "gradients")
    )
    lines = [
        "Steps of two layers, forward and backward, float32, dense features in both; gains are "
        f"medians of ratios of turns. Load {raw['load']:.1f} at the beginning, "
        f"{raw.get('load_after', raw['load']):.1f} at the end, of two cores.",
        "",
        f"**Mean gain over GCN and SAGE at hidden widths {' and '.join(map(str, goal))}: "
        f"{reached:.2f}** against plain CSR (goal {GOAL:g}); "
        f"{_gains(rows, 'gain_same_products', goal):.2f} against plain CSR with the same dense "
        f"products; {_gains(rows, 'gain_pyg', goal):.1f} against PyTorch Geometric's default. "
        f"Largest error of outputs and gradients: {worst:.1e} (allowed: {WITHIN:.0e}), where no "
        "value of the reference lies beside the kink of ReLU (see Rounding).",
        "",
        "| hidden | against plain CSR | against plain CSR with oneDNN products | against PyG |",
        "|---:|---:|---:|---:|",
    ]
    for hidden in widths:
        found = [_gains(rows, each, [hidden]) for each in ("gain", "gain_same_products")]
        cells = [str(hidden), *(f"{each:.2f}" for each in found)]
        lines.append(f"| {' | '.join(cells)} | {_gains(rows, 'gain_pyg', [hidden]):.1f} |")
    return [
        *lines,
        "",
        "Plain CSR: `torch.nn.functional.linear` (MKL), one product each way by torch's CSR matrix "
        "for the sums over arcs (indices of 4 bytes, transpose made once), bias and activation "
        "apart, in the order of PyTorch Geometric. A fused plan multiplies by oneDNN's kernel with "
        "bias and ReLU inside, keeps the transpose of rows that no step changes for the gradient "
        "of weights, and undoes ReLU from the sign of its result. On this processor (AMD) MKL "
        "computes products with half the width of vectors that oneDNN takes, so that a part of "
        "the gain is the library's: the second column has oneDNN on both sides and shows what "
        "fusions and reorderings alone bring. The first aggregation of the features and their "
        "transpose, once before training, are in no step.",
    ]


def _table(rows: Sequence[dict[str, Any]], hidden: int) -> list[str]:
    lines = [
        f"## Hidden width {hidden}",
        "",
        "GAT has no form by CSR products: its base is attention with a value per arc and column, "
        "and it is in no mean."
        if any(row["network"] == "gat" and row["hidden"] == hidden for row in rows)
        else "GAT was not measured at this width.",
        "",
        "| graph | nodes | features | network | repeats | PyG ms | plain CSR ms | with oneDNN ms "
        "| plan ms | modelled ms | gain | gain, same products | PyG / plan | plan |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in (each for each in rows if each["hidden"] == hidden):
        names = ("pyg_ms", "base_ms", "same_products_ms", "plan_ms", "modelled_ms")
        cells = [row["graph"].partition(",")[0], f"{row['nodes']:,}", str(row["features"])]
        cells += [row["network"], str(row["repeats"]), *(f"{row[name]:.2f}" for name in names)]
        cells += [f"**{row['gain']:.2f}**", f"{row['gain_same_products']:.2f}"]
        cells += [f"{row['gain_pyg']:.1f}", ", ".join(row["plan"])]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _sparse(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "## Sparse features",
        "",
        "The same plan with features stored as CSR instead of densely: storage, not fusion.",
        "",
        "| graph | network | hidden | nonzeros | dense ms | sparse ms | dense / sparse |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [row["graph"], row["network"], str(row["hidden"]), f"{100 * row['share']:.1f} %"]
        cells += [f"{row['dense_ms']:.2f}", f"{row['sparse_ms']:.2f}", f"{row['ratio']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def biases_of(row: dict[str, Any]) -> str:
    """Which comparison is judged: a GAT has no kink, and so no margin."""
    return "margin" if "margin margin" in row else "drawn"


def _errors(rows: Sequence[dict[str, Any]]) -> list[str]:
    names = ("plan outputs", "plan gradients", "plain outputs", "plain gradients")
    lines = [
        "## Rounding",
        "",
        "Errors in float32 against the network without fusions in float64 (plain CSR; attention "
        "per arc), relative by norm, of the outputs and of the worst gradient of a parameter; "
        "plain CSR is that of the gains. Each hidden column has a bias, the same in float32 and "
        "float64, in the middle of the widest gap between values that lies within a tenth of a "
        "standard deviation of 0: *margin* is the least distance of any value of the reference "
        "from 0, *before ReLU* the largest error of a positive value of the plan. Nothing else is "
        "changed. A GAT has biases of 0 and no margin: ELU has no kink, and that of LeakyReLU in "
        "its scores shows in no cell.",
        "",
        f"| graph | network | hidden | {' | '.join(names)} | margin | before ReLU |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        biases = biases_of(row)
        cells = [row["graph"].replace(",nodes=", " "), row["network"], str(row["hidden"])]
        cells += [f"{row[f'{biases} {name}']:.1e}" for name in names]
        shown = ("margin margin", "margin plan hidden") if biases == "margin" else ()
        cells += [f"{row[name]:.1e}" for name in shown] or ["-", "-"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *_signs([row for row in rows if biases_of(row) == "margin"])]


def _signs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What biases of 0 come to: signs that differ, and errors with the signs found."""
    far = [row for row in rows if any(row[f"drawn {step} signs"] for step in ("plan", "plain"))]
    most = max(row[f"drawn {step} gradients at its signs"] for row in rows for step in STEPS)
    outputs = max(row[f"drawn {step} outputs"] for row in rows for step in STEPS)
    wrong = sum(row["margin margin"] <= row["margin plan hidden"] for row in rows)
    lines = [
        "With the biases of 0 that networks start with, some value of a large graph is nearer to 0 "
        "than float32 rounds; its sign, and with it the gradient of ReLU, which jumps there, then "
        "depends on the order of additions, in plain CSR as in a plan. All cells in which any sign "
        f"differs from that of the reference ({len(far)} of {len(rows)} with ReLU): how many of "
        "the values, the largest distance from 0 of such a value, the gradients' errors as they "
        "are, and against the reference with the signs that the step in float32 has found. With "
        f"these signs the gradients of all {len(rows)} cells are within {most:.1e}; outputs are "
        f"within {outputs:.1e} as they are. Cells above whose margin is not larger than the error "
        f"before ReLU: {wrong}.",
        "",
        "| graph | network | hidden | values | step | signs that differ | farthest from 0 "
        "| gradients | with its signs |",
        "|---|---|---:|---:|---|---:|---:|---:|---:|",
    ]
    for row in far:
        for step in STEPS:
            cells = [row["graph"].replace(",nodes=", " "), row["network"], str(row["hidden"])]
            cells += [f"{row['drawn values']:,.0f}", step, f"{row[f'drawn {step} signs']:.0f}"]
            names = ("farthest", "gradients", "gradients at its signs")
            cells += [f"{row[f'drawn {step} {name}']:.1e}" for name in names]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _model(raw: dict[str, Any], fit: list[str]) -> list[str]:
    lines = [
        "## The plan of the cost model",
        "",
        "Coefficients were fitted per network on other graphs and hidden widths than those of "
        f"this page: {'; '.join(fit)}. The MILP chooses by them; the tables above have its plans.",
        "",
    ]
    if not raw.get("regret"):
        return lines
    regrets = [each["regret"] for each in raw["regret"]]
    lines += [
        "`python benchmarks/gnn_fusion.py --regret` measures every legal plan and, in "
        f"{raw['regret'][0]['turns']} turns with the chosen one, the best "
        f"{raw['regret'][0]['finalists']} of them again: regret is the median time of the chosen "
        f"plan over that of the best, minus 1. **Mean {100 * np.mean(regrets):.1f} %, largest "
        f"{100 * max(regrets):.1f} %.** A plan in the middle of all has the regret in brackets.",
        "",
        "| graph | network | hidden | plans | chosen ms | best ms | regret | middle plan "
        "| modelled / measured (quartiles) | chosen | best |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|---|---|",
    ]
    for row in raw["regret"]:
        cells = [row["graph"].replace(",nodes=", " "), row["network"], str(row["hidden"])]
        cells += [str(row["plans"]), f"{row['chosen_ms']:.2f}", f"{row['best_ms']:.2f}"]
        cells += [
            f"**{100 * row['regret']:.1f} %**",
            f"({100 * row['median_regret_of_all']:.0f} %)",
        ]
        cells += [", ".join(f"{each:.2f}" for each in row["ratio_quartiles"])]
        cells += [", ".join(row["chosen"]), ", ".join(row["best"])]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]
