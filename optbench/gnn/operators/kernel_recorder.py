"""Counts what kernels do while code runs: launches, floating-point operations, bytes moved.

Every kernel of PyTorch that runs within the recorder is counted, forward and backward alike; views
launch none. A kernel reads its input tensors and writes its outputs, dimensions of stride 0 once.
Kernels that gather read as many bytes as they write, not their whole source. Operations are those
of PyTorch's own flop counter for products, and otherwise one per value of the largest tensor of
floats. Which constants are read, and how large they are, is noted by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import flop_registry

ATEN = torch.ops.aten
GATHERS = {ATEN.index_select, ATEN.gather, ATEN.index, ATEN.embedding}
SCATTERS = {
    *(ATEN.scatter_add, ATEN.scatter_add_, ATEN.scatter_reduce, ATEN.scatter_reduce_),
    *(ATEN.index_add, ATEN.index_add_, ATEN.index_put, ATEN.index_put_, ATEN.index_reduce),
    *(ATEN.index_reduce_, ATEN.scatter, ATEN.scatter_, ATEN._index_put_impl_),
}
# Kernels that use no value of their inputs, and those that only reserve memory.
FILLS = {
    *(ATEN.new_zeros, ATEN.new_ones, ATEN.new_full, ATEN.zeros_like, ATEN.ones_like),
    *(ATEN.full_like, ATEN.zeros, ATEN.ones, ATEN.full, ATEN.arange, ATEN.zero_, ATEN.fill_),
}
EMPTIES = {ATEN.empty, ATEN.empty_like, ATEN.new_empty, ATEN.empty_strided, ATEN.new_empty_strided}
COPIES = {ATEN.clone, ATEN.copy_, ATEN._to_copy, ATEN.cat}


Constant: TypeAlias = tuple[str, bool]


@dataclass
class KernelTotals:
    """Sums over the kernels that ran."""

    launches: int = 0
    flops: float = 0.0
    moved_bytes: float = 0.0
    has_product: bool = False
    # Sources and indices of kernels that gather, and indices of those that scatter.
    gathered: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    scattered: list[torch.Tensor] = field(default_factory=list)
    # Bytes of the constants that are read, by name and by whether it is their beginning.
    constants: dict[Constant, float] = field(default_factory=dict)


class KernelRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of PyTorch
    """A context in which kernels are counted; ``constants`` names storages that never change."""

    def __init__(self, constants: Mapping[int, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of PyTorch
        self.totals = KernelTotals()
        self._constants = constants

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        if not _is_view(func) and packet not in EMPTIES:
            given = [each for each in tree_flatten((args, kwargs))[0] if _is_tensor(each)]
            made = [each for each in tree_flatten(out)[0] if _is_tensor(each)]
            self._count(packet, args, kwargs, given, made, out)
        return out

    def _count(
        self,
        packet: Any,
        args: Any,
        kwargs: dict[str, Any],
        given: list[torch.Tensor],
        made: list[torch.Tensor],
        out: Any,
    ) -> None:
        totals = self.totals
        totals.launches += 1
        written = sum(map(extent_bytes, made))
        read = [] if packet in FILLS else given
        if packet in GATHERS:
            totals.moved_bytes += written
            source, read = given[0], given[1:]
            totals.gathered.append((source, given[1]))
        elif packet in SCATTERS:
            whole = (each for each in given if each.dtype in (torch.int64, torch.int32))
            totals.scattered += list(whole)[:1]
        totals.moved_bytes += written + sum(map(extent_bytes, read))
        for each in read:
            name = self._constants.get(storage_of(each))
            if name is not None:
                totals.constants[name, each.storage_offset() == 0] = extent_bytes(each)
        if packet in flop_registry:
            totals.has_product = True
            totals.flops += flop_registry[packet](*args, **kwargs, out_val=out)
        elif packet not in GATHERS | FILLS | COPIES:
            floats = [each for each in (*given, *made) if each.is_floating_point()]
            totals.flops += max((extent(each) for each in floats), default=0)


def extent(tensor: torch.Tensor) -> int:
    """The number of different values that a tensor can hold: repeated dimensions count once."""
    size = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        size *= length if stride != 0 or length == 0 else 1
    return size


def extent_bytes(tensor: torch.Tensor) -> int:
    return extent(tensor) * tensor.element_size()


def storage_of(tensor: torch.Tensor) -> int:
    """Where the values of a tensor and of all its views lie."""
    return tensor.untyped_storage().data_ptr()


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _is_view(func: Any) -> bool:
    """Whether the result shares its memory with an input and nothing is written."""
    aliases = [each.alias_info for each in func._schema.returns]
    return any(each is not None and not each.is_write for each in aliases)
