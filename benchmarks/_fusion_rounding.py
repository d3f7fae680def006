"""Rounding of benchmarks/gnn_fusion.py: steps in float32 against the same network in float64.

Errors are relative by the norm of each tensor, the largest one. The reference is plain CSR in
float64; in a GAT, whose activation ELU has no kink, attention with a value per arc and column.

The gradient of ReLU jumps at 0. Where a value z of the reference before ReLU is nearer to 0 than
float32 rounds, a step in float32 may find the other sign, whichever kernels it has, and its
gradients are those of the other side. Two comparisons are free of that:

    with a margin      each hidden column has a bias in the middle of the widest gap between values
                       −z that lies within ``BIAS_RANGE`` standard deviations of 0; the reference
                       then has no value nearer to 0 than the margin, and all is compared as it is
    with the signs     weights as they are drawn, biases 0; gradients of the reference are taken
                       with the signs that the step in float32 has found

Signs that differ are counted, and the largest |z| where they do is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._fusion_cases import PlainCsr

# Of the values of a column; biases are small beside them.
BIAS_RANGE = 0.1


def errors_of(case: Any, fused: frozenset[str], features: Any) -> dict[str, float]:
    """Errors of a plan and of plain CSR with biases of 0, and with those of the margin.

    Keys are ``<biases> <step> <what>``: biases are drawn or margin, the step is plan or plain.
    """
    if case.widths.kind == "gat":
        return _attention_errors(case, fused, features)
    found = _relu_errors("drawn", case, fused, features, None)
    biases = margin_biases(case, features)
    return {**found, **_relu_errors("margin", case, fused, features, biases)}


def margin_biases(case: Any, features: Any) -> Any:
    """The biases of the hidden layer, numbers of float32, that keep values away from 0."""
    import torch

    network = _network(case, torch.float64, None)
    with torch.no_grad():
        values = PlainCsr(case, network, features.double()).layer(0, features.double()).numpy()
    return torch.from_numpy(np.array([-middle_of_gap(z) for z in values.T], dtype=np.float32))


def middle_of_gap(values: Any) -> float:
    """The middle of the widest gap between values, and the ends, of the range around 0."""
    width = BIAS_RANGE * float(values.std())
    near = values[np.abs(values) < width]
    ends = np.sort(np.concatenate([near, [-width, width]]))
    widest = int(np.argmax(np.diff(ends)))
    return float(ends[widest] + ends[widest + 1]) / 2


def _relu_errors(
    name: str, case: Any, fused: frozenset[str], features: Any, biases: Any
) -> dict[str, float]:
    """Errors of a plan and of plain CSR with given biases of the hidden layer."""
    import torch

    network = _network(case, torch.float64, biases)
    reference = PlainCsr(case, network, features.double())
    with torch.no_grad():
        before = reference.layer(0, features.double())
    exact = _reference_step(reference, before > 0)
    out = {f"{name} values": float(before.numel()), f"{name} margin": float(before.abs().min())}
    for step, run in (("plan", _plan_step), ("plain", _plain_step)):
        found, positive, off = run(case, fused, features, biases, before)
        other = positive != (before > 0)
        at_signs = _reference_step(reference, positive) if other.any() else exact
        errors, same = _errors(found, exact), _errors(found, at_signs)
        out |= {
            f"{name} {step} outputs": errors[0],
            f"{name} {step} gradients": max(errors[1:]),
            f"{name} {step} gradients at its signs": max(same[1:]),
            f"{name} {step} signs": float(other.sum()),
            f"{name} {step} farthest": float(before[other].abs().max()) if other.any() else 0.0,
            f"{name} {step} hidden": off,
        }
    return out


def _attention_errors(case: Any, fused: frozenset[str], features: Any) -> dict[str, float]:
    import torch

    exact, _ = _fused_step(case, frozenset(), features.double(), None, torch.float64)
    out = {}
    for step, names in (("plan", fused), ("plain", frozenset[str]())):
        found, _ = _fused_step(case, names, features, None, torch.float32)
        errors = _errors(found, exact)
        out[f"drawn {step} outputs"], out[f"drawn {step} gradients"] = errors[0], max(errors[1:])
    return out


def _network(case: Any, dtype: Any, biases: Any) -> Any:
    """The network with its drawn weights, rounded to float32, and given hidden biases."""
    from optbench.gnn.kernels.fused_network import FusedNetwork

    network = FusedNetwork(case.widths, 0)
    if biases is not None:
        network.biases[0].data = biases.clone()
    return network.to(dtype)


def _fused_step(
    case: Any, fused: frozenset[str], features: Any, biases: Any, dtype: Any
) -> tuple[list[Any], Any]:
    """Outputs and gradients, and the hidden rows, by the kernels of a plan."""
    from optbench.gnn.kernels.arc_rows import network_arcs
    from optbench.gnn.kernels.fused_network import network_inputs

    kind, network = case.widths.kind, _network(case, dtype, biases)
    rows = network_arcs(case.data.graph, kind, features.new_empty(0).numpy().dtype)
    inputs = network_inputs(kind, fused, rows, features)
    hidden = network.layer_rows(1, inputs, inputs.features, fused)
    out = network.layer_rows(2, inputs, hidden, fused)
    return _outcome(network, out), hidden.detach()


def _plan_step(
    case: Any, fused: frozenset[str], features: Any, biases: Any, before: Any
) -> tuple[list[Any], Any, float]:
    """What a plan in float32 has found, where its values are above 0, and its largest error."""
    found, hidden = _fused_step(case, fused, features, biases, features.dtype)
    return found, hidden > 0, float((hidden.double() - before.relu()).abs().max())


def _plain_step(
    case: Any, fused: frozenset[str], features: Any, biases: Any, before: Any
) -> tuple[list[Any], Any, float]:
    """The same of plain CSR in float32."""
    network = _network(case, features.dtype, biases)
    step = PlainCsr(case, network, features)
    hidden = step.layer(0, features).relu()
    found = _outcome(network, step.layer(1, hidden))
    hidden = hidden.detach()
    return found, hidden > 0, float((hidden.double() - before.relu()).abs().max())


def _reference_step(reference: PlainCsr, positive: Any) -> list[Any]:
    """Outputs and gradients where ReLU passes the values at ``positive`` and no others."""
    reference.network.zero_grad()
    hidden = reference.layer(0, reference.features) * positive
    return _outcome(reference.network, reference.layer(1, hidden))


def _outcome(network: Any, out: Any) -> list[Any]:
    """Outputs and the gradients of all parameters."""
    out.square().sum().backward()
    return [out.detach(), *(each.grad.clone() for each in network.parameters())]


def _errors(found: Sequence[Any], exact: Sequence[Any]) -> list[float]:
    pairs = zip(found, exact, strict=True)
    return [float((one.double() - other).norm() / other.norm()) for one, other in pairs]
