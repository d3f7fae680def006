"""The names of fusions that kernels exist for, and which of them exclude each other.

A name is a stem and the number of its layer, such as ``spmm1``; ``aggregated_before`` has no number
and belongs to the first layer. Two fusions of a layer that replace one of its steps exclude each
other. Steps are: the dense products, the sums over arcs, the addition of both in SAGE, the end
(bias, activation and dropout).
"""

from __future__ import annotations

from collections.abc import Collection

from optbench.errors import ModelError, nearest
from optbench.gnn.kernels.arc_rows import NetworkKind

BEFORE = "aggregated_before"
# The steps of a layer that a fusion replaces, by network and stem.
REPLACED: dict[NetworkKind, dict[str, frozenset[str]]] = {
    "gcn": {
        "spmm": frozenset({"sums"}),
        "spmm_epilogue": frozenset({"sums", "end"}),
        "one_pass": frozenset({"end"}),
        BEFORE: frozenset({"dense", "sums"}),
        "aggregated_first": frozenset({"dense", "sums"}),
    },
    "sage": {
        "spmm": frozenset({"sums"}),
        "one_product": frozenset({"dense", "add"}),
        "one_pass": frozenset({"end"}),
        BEFORE: frozenset({"dense", "sums", "add"}),
        "aggregated_last": frozenset({"dense", "sums", "add"}),
        "aggregated_last_epilogue": frozenset({"dense", "sums", "add", "end"}),
    },
    "gat": {
        "one_pass": frozenset({"end"}),
        "attention": frozenset({"sums"}),
        "attention_epilogue": frozenset({"sums", "end"}),
    },
}
# With one of these the first layer of SAGE sums no rows of features in a step.
FIT_FOR_SPARSE = frozenset({BEFORE, "aggregated_last1", "aggregated_last_epilogue1"})


def fusions_of(kind: NetworkKind, layers: int) -> dict[str, tuple[int, frozenset[str]]]:
    """The names of all fusions of a network, each with its layer and the steps that it replaces."""
    found = {}
    for layer in range(1, layers + 1):
        for stem, steps in REPLACED[kind].items():
            if stem == BEFORE:
                name = BEFORE if layer == 1 else None
            else:
                # The first layer has the other order by what is aggregated before.
                name = None if stem == "aggregated_first" and layer == 1 else f"{stem}{layer}"
            if name is not None:
                found[name] = (layer, steps)
    return found


def plain_csr(kind: NetworkKind, layers: int) -> tuple[str, ...]:
    """The fusions of plain CSR: one sparse product for the sums of a layer, and nothing else.

    Attention has no such form: plain attention is that without a fusion.
    """
    return () if kind == "gat" else tuple(f"spmm{layer}" for layer in range(1, layers + 1))


def require_fusions(kind: NetworkKind, layers: int, chosen: Collection[str]) -> None:
    """Refuse names that a network does not have, and fusions that exclude each other."""
    known = fusions_of(kind, layers)
    taken: dict[tuple[int, str], str] = {}
    for name in chosen:
        if name not in known:
            raise ModelError(
                f"fusions: {name!r} is no fusion of a {kind} of {layers} layers; "
                f"{nearest(name, known)}"
            )
        layer, steps = known[name]
        for step in sorted(steps):
            other = taken.setdefault((layer, step), name)
            if other != name:
                raise ModelError(
                    f"fusions: {other} and {name} both replace the {step} of layer {layer}; "
                    "choose one of them"
                )
