"""Checkpoints of trained networks in safetensors: each layer by its name, prices of budgets, and
metadata in the header.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, ParameterError
from optbench.files import replacing
from optbench.learn.sites.pilot import Float32, RoutingNetwork, layers
from optbench.learn.tensor_file import read_tensor_file
from optbench.model.instance import Floats

FORMAT = "optbench-site-pilot-1"


@dataclass(frozen=True, eq=False)
class SiteCheckpoint:
    """``prices_w`` are the prices of latency at which the network keeps ``budgets_s``;
    ``provenance`` is for information.
    """

    pilot: RoutingNetwork
    pools: int
    widest: int
    mean_units: float
    budgets_s: Floats
    prices_w: Floats
    provenance: dict[str, Any] = field(default_factory=dict)

    def price_w(self, budget_s: float) -> float:
        """Return the price of a budget: log-linear between stored ones, the outermost
        beyond them.
        """
        return float(
            np.exp(np.interp(np.log(budget_s), np.log(self.budgets_s), np.log(self.prices_w)))
        )

    def check_budget(self, solver: str, budget_s: float) -> None:
        """Refuse a budget for which the network was not trained."""
        low, high = float(self.budgets_s[0]), float(self.budgets_s[-1])
        if not low <= budget_s <= high:
            raise ParameterError(
                f"{solver}: latency_budget_s is {budget_s:g}; its network has prices for {low:g} "
                f"s to {high:g} s. "
                f"Train one for it: optbench train {solver} --on PROBLEM -p budgets_s=[...] -o "
                "FILE, then -p checkpoint=FILE"
            )


def write_checkpoint(path: Path, checkpoint: SiteCheckpoint) -> None:
    """Write the file atomically."""
    from safetensors.numpy import save_file

    pilot = checkpoint.pilot
    arrays: dict[str, Any] = {"budgets_s": checkpoint.budgets_s, "prices_w": checkpoint.prices_w}
    at = 0
    for name, shape in layers(
        pilot.kind, pilot.hidden, checkpoint.pools, checkpoint.widest
    ).items():
        size = int(np.prod(shape))
        arrays[f"net.{name}"] = np.ascontiguousarray(pilot.theta[at : at + size].reshape(shape))
        at += size
    about = {
        "format": FORMAT,
        "kind": pilot.kind,
        "hidden": pilot.hidden,
        "clock": pilot.clock,
        "seen": pilot.seen,
        "pools": checkpoint.pools,
        "widest": checkpoint.widest,
        "mean_units": checkpoint.mean_units,
        "provenance": checkpoint.provenance,
    }
    with replacing(path) as fresh:
        save_file(arrays, str(fresh), metadata={"optbench": json.dumps(about)})


def read_checkpoint(path: Path) -> SiteCheckpoint:
    """Read a file; an error names what is wrong with it."""
    make = f"optbench train chsac_af --on PROBLEM -o {path}"
    about, arrays = read_tensor_file(path, FORMAT, make, "that optbench train has written")
    return _checkpoint_from(path, about, arrays)


def _checkpoint_from(path: Path, about: dict[str, Any], arrays: dict[str, Any]) -> SiteCheckpoint:
    kind, hidden, pools = about["kind"], int(about["hidden"]), int(about["pools"])
    widest = int(about["widest"])
    wanted = layers(kind, hidden, pools, widest)
    parts: list[Float32] = []
    for name, shape in wanted.items():
        found = arrays.get(f"net.{name}")
        if found is None or found.shape != shape:
            has = "missing" if found is None else f"of shape {found.shape}"
            raise FileFormatError(
                f"{path}: layer {name!r} is {has}; a {kind} network of width {hidden} has "
                f"{shape} there"
            )
        if not np.isfinite(found).all():
            raise FileFormatError(f"{path}: layer {name!r} holds a weight that is not finite")
        parts.append(found.ravel())
    theta, seen = np.concatenate(parts).astype(np.float32), str(about.get("seen", "regrets"))
    pilot = RoutingNetwork(kind, hidden, theta, str(about["clock"]), seen=seen)
    budgets, prices = arrays.get("budgets_s"), arrays.get("prices_w")
    if budgets is None or prices is None or budgets.shape != prices.shape or len(budgets) == 0:
        raise FileFormatError(
            f"{path}: budgets_s and prices_w must both be present and of equal length"
        )
    return SiteCheckpoint(
        pilot,
        pools,
        widest,
        float(about["mean_units"]),
        budgets,
        prices,
        dict(about.get("provenance") or {}),
    )
