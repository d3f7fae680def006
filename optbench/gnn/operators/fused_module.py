"""A user's module whose layers run the fused kernels of a plan.

    graph = operator_graph(model, num_features)
    fused = fused_module(model, graph, chosen)      names of ``fusion_candidates(graph)``
    fused(x, edge_index)                            as before
    model.load_state_dict(fused.state_dict())       the same keys
    fused.fusions                                   which fusions run, and why others do not

A fusion belongs to the layer whose code calls its operators. A ReLU behind a layer, in the user's
own code, is computed by the kernel of the layer, and the call of it then returns what it is given.
Dropout and other operations behind a layer stay calls of torch, so that random numbers are those of
the user's module. The fused module is compared with the user's before it is returned.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from optbench.errors import ModelError, nearest
from optbench.gnn.operators.convolution_kernels import (
    STEMS,
    ConvolutionKernels,
    FusedConvolution,
    missing_kernel,
)
from optbench.gnn.operators.exported_model import GraphSize, failing, inputs_of
from optbench.gnn.operators.fusion_candidates import arc_regions, fusion_candidates
from optbench.gnn.operators.operator_graph import OperatorGraph
from optbench.shapes.gnn_training.operator_costs import Fusion

TRIED = GraphSize(17, 57)
# Outputs and gradients of both modules, by norm.
AGREE_WITHIN = {torch.float32: 1e-4, torch.float64: 1e-10}
RELUS = frozenset(
    (torch.relu, torch.relu_, torch.nn.functional.relu, torch.Tensor.relu, torch.Tensor.relu_)
)


@dataclass
class ModuleFusions:
    """What became of the fusions of a plan: those that run, of these what stays a call of torch,
    and those that do not run, with reasons.
    """

    executed: list[str] = field(default_factory=list)
    partly: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


class FusedForward:
    """Comes before the class of a user's module."""

    fusions: ModuleFusions

    def forward(self, *given: Any, **more: Any) -> Any:
        module: Any = super()
        with _FinishedRelu():
            return module.forward(*given, **more)


class _FinishedRelu(TorchFunctionMode):
    """Returns what ReLU is given where a kernel has computed it."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = [*args, *(kwargs or {}).values()]
        if func in RELUS and _is_rectified(given[0]):
            return given[0]
        return func(*args, **(kwargs or {}))


def fused_module(
    model: torch.nn.Module, graph: OperatorGraph, chosen: Collection[str], name: str = "model"
) -> Any:
    """Return a copy of the module with the chosen fusions, and what became of them: ``fusions``."""
    kernels, found = planned_kernels(model, graph, chosen)
    fused: Any = deepcopy(model)
    for path, each in kernels.items():
        layer = fused.get_submodule(path)
        layer.kernels = each
        layer.__class__ = type(f"Fused{each.kind}", (_RectifiedConvolution, type(layer)), {})
    fused.__class__ = type(f"Fused{type(fused).__name__}", (FusedForward, type(fused)), {})
    fused.fusions = found
    _require_alike(model, fused, graph, name)
    return fused


def _is_rectified(values: Any) -> bool:
    """Whether a kernel has computed ReLU of these values, which nothing changed since."""
    return bool(getattr(values, "rectified_version", -1) == values._version)


class _RectifiedConvolution(FusedConvolution):
    """Marks results that ReLU has been applied to."""

    def forward(self, x: Any, edge_index: Any, *others: Any, **more: Any) -> Any:
        out = super().forward(x, edge_index, *others, **more)
        if self.kernels.relu and isinstance(out, torch.Tensor):
            out.rectified_version = out._version  # type: ignore[attr-defined]
        return out


def planned_kernels(
    model: torch.nn.Module, graph: OperatorGraph, chosen: Collection[str]
) -> tuple[dict[str, ConvolutionKernels], ModuleFusions]:
    """Return the kernels of layers by their paths, and what becomes of each fusion."""
    known = {each.name: each for each in fusion_candidates(graph)}
    layers = {path: each for path, each in model.named_modules() if _sums_over_arcs(each)}
    often = _called_often(graph, layers)
    found, stems = ModuleFusions(), dict[str, set[str]]()
    rectified = set[str]()
    for name in sorted(chosen):
        if name not in known:
            raise ModelError(f"fusion {name!r} is no candidate; {nearest(name, known)}")
        path, reason = _layer_of(graph, known[name], layers, often)
        stem = _stem_of(name)
        if not reason and stem not in STEMS[type(layers[path]).__name__]:
            reason = f"{type(layers[path]).__name__} {path!r} has no kernel for {stem or name}"
        if reason:
            found.left[name] = reason
            continue
        found.executed.append(name)
        stems.setdefault(path, set()).add(stem)
        behind = _behind(graph, known[name], path, layers)
        if behind and "relu" in behind[0]:
            rectified.add(path)
            behind = behind[1:]
        if behind:
            found.partly[name] = f"{', '.join(behind)} behind the layer: calls of torch"
    kernels = {
        path: ConvolutionKernels(type(layers[path]).__name__, frozenset(each), path in rectified)
        for path, each in stems.items()
    }
    return kernels, found


def _sums_over_arcs(module: torch.nn.Module) -> bool:
    from torch_geometric.nn import MessagePassing

    return isinstance(module, MessagePassing)


def _path_of(module: str, layers: Collection[str]) -> str | None:
    """The innermost layer that a module is, or is in."""
    around = [p for p in layers if not p or module == p or module.startswith(f"{p}.")]
    return max(around, key=len, default=None)


def _called_often(graph: OperatorGraph, layers: Collection[str]) -> set[str]:
    """Layers that are called more than once in a step."""
    seen: list[str] = []
    for region in arc_regions(graph):
        paths = {_path_of(graph.traced[k].module, layers) for k in region.members}
        seen += [path for path in paths if path is not None]
    return {path for path in seen if seen.count(path) > 1}


def _layer_of(
    graph: OperatorGraph, fusion: Fusion, layers: dict[str, Any], often: set[str]
) -> tuple[str, str]:
    """The layer of a fusion, and why it has no kernel, if so."""
    found = [_path_of(graph.traced[k].module, layers) for k in fusion.replaces]
    paths = sorted({each for each in found if each is not None})
    if not paths:
        return "", "its operators are in no layer of PyTorch Geometric"
    if len(paths) > 1:
        return "", f"its operators are in several layers: {', '.join(paths)}"
    (path,) = paths
    if path in often:
        return path, f"layer {path!r} is called more than once in a step"
    return path, missing_kernel(layers[path])


def _stem_of(name: str) -> str:
    """The longest stem that a name begins with."""
    stems = {stem for each in STEMS.values() for stem in each}
    return max((each for each in stems if name.startswith(each)), key=len, default="")


def _behind(graph: OperatorGraph, fusion: Fusion, path: str, layers: Collection[str]) -> list[str]:
    """Names of operators of a fusion that follow the layer in the user's code, in order."""
    outside = [k for k in fusion.replaces if _path_of(graph.traced[k].module, layers) != path]
    return [graph.traced[k].calls.split(".")[1] for k in outside]


def _require_alike(model: Any, fused: Any, graph: OperatorGraph, name: str) -> None:
    """Refuse kernels that do not compute what the module computes: in double precision, where the
    module's code can, since gradients of attention lose digits in any order of operators.
    """
    features = round(graph.feature_bytes / 4)
    x, arcs, _ = inputs_of(TRIED, features, graph.num_classes)
    dtype = torch.float64
    try:
        expected = _outcome(model, x, arcs, dtype, name)
    except ModelError:
        dtype = torch.float32
        expected = _outcome(model, x, arcs, dtype, name)
    found = _outcome(fused, x, arcs, dtype, name)
    for one, other in zip(found, expected, strict=True):
        off = float((one - other).norm()) / max(float(other.norm()), 1e-30)
        if off > AGREE_WITHIN[dtype]:
            raise ModelError(
                f"{name}: with the fusions {', '.join(fused.fusions.executed)} outputs or "
                f"gradients differ by {off:.1e} of their norm; leave these fusions out"
            )


def _outcome(
    module: Any, x: torch.Tensor, arcs: torch.Tensor, dtype: torch.dtype, name: str
) -> list[torch.Tensor]:
    """Outputs and gradients of a copy, while training, with the same random numbers."""
    tried = deepcopy(module).train().to(dtype)
    with torch.random.fork_rng(devices=[]), failing(name, "forward(x, edge_index) fails"):
        torch.manual_seed(0)
        out: Any = tried(x.to(dtype), arcs)
        tried.zero_grad()
        out.square().sum().backward()
    grads = [each.grad for each in tried.parameters() if each.grad is not None]
    return [out.detach(), *grads]
