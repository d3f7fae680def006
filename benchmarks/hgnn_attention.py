"""What the attention of hgnn looks at where deadlines bind and where energy does; writes
docs/results/hgnn_attention.md and a picture.

    python benchmarks/hgnn_attention.py

The same jobs are given twice: with tight deadlines and a dear makespan, and with no deadlines and a
cheap one. The three trained networks are beside three of random weights, each layer with the mean
and the deviation of a trained one. A head *leans* to a feature by the mean of the feature under its
shares of attention, less the mean without attention; features of pairs are logarithms of ratios to
the best choice of a task, those of tasks and classes are in deviations. A layer *changes* by half
of the sum of absolute differences of its shares between both situations. Last, shares are replaced
by equal ones when solving; nothing was trained for that, so that the loss rather overstates what
the layer is worth. Intervals are over networks and instances together.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent  # noqa: E402
from benchmarks._pictures import Row, across, picture, upward  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.evaluate.stats import estimate  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.sim.rules import run_rule  # noqa: E402
from solvers.hgnn.forward_pass import ForwardPass  # noqa: E402
from solvers.hgnn.lookup_table import class_names  # noqa: E402
from solvers.hgnn.milestone_rule import rule_of  # noqa: E402
from solvers.hgnn.network_checkpoint import read_network  # noqa: E402
from solvers.hgnn.network_settings import LEVEL_HEADS  # noqa: E402
from solvers.hgnn.seen_arrays import (  # noqa: E402
    CLASS_COLUMNS,
    PAIR_COLUMNS,
    TASK_COLUMNS,
    SeenArrays,
)
from solvers.hgnn.situation import Situation, situation_of  # noqa: E402
from solvers.hgnn.substitutes import random_weights  # noqa: E402

if TYPE_CHECKING:
    from solvers.hgnn.network_design import Weights

Shares = NDArray[np.float32]
BASE = "gpu_cluster:nodes=16,tasks=400"
BOUND_BY = {
    "deadlines": f"{BASE},deadlines=tight,makespan_share=2",
    "energy": f"{BASE},deadlines=none,makespan_share=0.05",
}
SEEDS, TRAINED = (10, 11, 12, 13, 14), (0, 1, 2)
NETWORKS = Path(__file__).with_name("networks")
# Layers of attention, and what each of their rows asks.
LAYERS = {
    "to_task": "tasks ask classes",
    "to_device": "classes ask tasks",
    "spatial": "classes ask classes",
    "cluster": "the cluster asks nodes",
}
# The features that heads may lean to, by layer.
FEATURES = {
    "to_task": ("slowness", "net", "cost"),
    "to_device": ("slack", "load", "length", "work_before"),
    "spatial": ("slowness", "dearness", "rest", "demand_at_1"),
}


@dataclass(frozen=True, eq=False)
class WatchedPass(ForwardPass):
    """A forward pass that keeps its shares of attention; those of ``flat`` layers are equal."""

    flat: Collection[str] = ()
    kept: dict[str, Shares] = field(default_factory=dict)

    def shares(self, name: str, score: Shares, axis: int) -> Shares:
        found = super().shares(name, score, axis)
        if name in self.flat:
            some = np.isfinite(score).astype(np.float32)
            found = some / np.maximum(1.0, some.sum(axis=axis, keepdims=True))
        self.kept[name] = found
        return found


def play(instance: Instance, found: Situation, network: WatchedPass) -> float:
    """Return the verified objective of the network's answers."""
    schedule = run_rule(instance, rule_of(instance, found, network.answers(found.seen))).schedule
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert isinstance(verdict.objective, float)
    return verdict.objective


def deviations(values: Shares) -> Shares:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0))


def leanings(seen: SeenArrays, kept: dict[str, Shares]) -> dict[tuple[str, str, int], float]:
    """Return how far each head leans to each feature, by (layer, feature, head)."""
    out: dict[tuple[str, str, int], float] = {}
    open_tasks = seen.fits.sum(axis=1) > 1
    equal = seen.fits / np.maximum(1, seen.fits.sum(axis=1, keepdims=True))
    task = deviations(seen.task)
    device = deviations(seen.device)
    count = len(seen.device)
    for head in range(kept["to_task"].shape[2]):
        share = kept["to_task"][:, :, head]
        for name in FEATURES["to_task"]:
            value = seen.pair[:, :, PAIR_COLUMNS.index(name)]
            gain = ((share - equal) * value).sum(axis=1)
            out["to_task", name, head] = float(gain[open_tasks].mean())
        share = kept["to_device"][:, :, head]
        all_tasks = seen.fits / np.maximum(1, seen.fits.sum(axis=0, keepdims=True))
        for name in FEATURES["to_device"]:
            value = task[:, TASK_COLUMNS.index(name)]
            out["to_device", name, head] = float(((share - all_tasks).T @ value).mean())
        share = kept["spatial"][:, :, head]
        others = (1.0 - np.eye(count)) / max(1, count - 1)
        for name in FEATURES["spatial"]:
            value = device[:, CLASS_COLUMNS.index(name)]
            out["spatial", name, head] = float(((share - others).T @ value).mean())
    return out


def focus(kept: dict[str, Shares], seen: SeenArrays) -> dict[str, float]:
    """Return by layer exp(entropy) over the number of what could be looked at: 1 where all is
    looked at alike, and little where one thing is.
    """
    count = len(seen.device)
    sizes = {
        "to_task": (seen.fits.sum(axis=1)[:, None], 1),
        "to_device": (seen.fits.sum(axis=0)[:, None], 0),
        "spatial": (np.full((count, 1), count - 1), 0),
        "cluster": (np.full(1, kept["cluster"].shape[1]), 1),
    }
    out = {}
    for name, (size, axis) in sizes.items():
        share = kept[name]
        entropy = -(share * np.log(np.maximum(share, 1e-30))).sum(axis=axis)
        out[name] = float((np.exp(entropy) / np.maximum(1, size)).mean())
    return out


def changes(one: dict[str, Shares], two: dict[str, Shares]) -> dict[str, float]:
    """Return by layer half of the sum of absolute differences, averaged over rows and heads."""
    out = {}
    for name, axis in (("to_task", 1), ("to_device", 0), ("spatial", 0), ("cluster", 1)):
        if one[name].shape == two[name].shape:
            out[name] = float(0.5 * np.abs(one[name] - two[name]).sum(axis=axis).mean())
    return out


def by_class(instance: Instance, seen: SeenArrays, share: Shares) -> dict[str, float]:
    """Return by name of a device the mean share of its classes over that without attention."""
    equal = seen.fits / np.maximum(1, seen.fits.sum(axis=1, keepdims=True))
    names, out = class_names(instance), dict[str, float]()
    for name in dict.fromkeys(names):
        mine = [c for c, each in enumerate(names) if each == name]
        out[name] = float(share[:, mine].mean(axis=2).sum() / max(1e-9, equal[:, mine].sum()))
    return out


@dataclass
class Watched:
    """All that is measured, by trained or random, then by layer and so on; one value per network
    and seed.
    """

    lean: dict[tuple[str, str, tuple[str, str, int], int], list[float]] = field(
        default_factory=dict
    )
    focus: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    change: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    classes: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    worth: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def watch() -> Watched:
    """Play and measure everything."""
    out = Watched()
    trained = [read_network(NETWORKS / f"hgnn-{k}.safetensors") for k in TRAINED]
    for seed in SEEDS:
        made: dict[str, Instance] = {n: load_target(spec, seed) for n, spec in BOUND_BY.items()}
        first, second = made.values()
        assert (first.tasks.units == second.tasks.units).all()
        for k, checkpoint in enumerate(trained):
            kinds: dict[str, Weights] = {
                "trained": checkpoint.weights,
                "random": random_weights(checkpoint.weights, k + 1),
            }
            for kind, weights in kinds.items():
                network = WatchedPass(weights, checkpoint.settings)
                look(out, kind, k, made, network)
        print(seed, "watched", flush=True)
    return out


def look(out: Watched, kind: str, k: int, made: dict[str, Instance], network: WatchedPass) -> None:
    """Add what a network looks at in both situations."""
    seen_by: list[dict[str, Shares]] = []
    for name, instance in made.items():
        found = situation_of(instance)
        watched = replace(network, kept={})
        value = play(instance, found, watched)
        seen_by.append(watched.kept)
        for key, lean in leanings(found.seen, watched.kept).items():
            out.lean.setdefault((kind, name, key, k), []).append(lean)
        for layer, width in focus(watched.kept, found.seen).items():
            out.focus.setdefault((kind, name, layer), []).append(width)
        for device, share in by_class(instance, found.seen, watched.kept["to_task"]).items():
            out.classes.setdefault((kind, name, device), []).append(share)
        if kind == "trained":
            for layer in (*LAYERS, "all four"):
                flat = tuple(LAYERS) if layer == "all four" else (layer,)
                other = play(instance, found, replace(network, kept={}, flat=flat))
                out.worth.setdefault((layer, name), []).append(other / value - 1.0)
    for layer, moved in changes(*seen_by).items():
        out.change.setdefault((kind, layer), []).append(moved)


def shown(values: list[float], digits: int = 2) -> str:
    found = estimate(values)
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def lean_table(found: Watched) -> list[str]:
    """Return the leanings of the heads of every trained network, where deadlines bind and where
    energy does.
    """
    lines = ["| layer | feature | training seed | head 0 | head 1 | head 2 | head 3 |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for layer, features in FEATURES.items():
        for feature in features:
            for k in TRAINED:
                cells = []
                for key in sorted(
                    {key for *_, key, _ in found.lean if key[:2] == (layer, feature)}
                ):
                    tight, free = (found.lean["trained", name, key, k] for name in BOUND_BY)
                    cells.append(f"{np.mean(tight):+.2f} / {np.mean(free):+.2f}")
                lines.append(f"| {layer} | {feature} | {k} | {' | '.join(cells)} |")
    return lines


def told_apart(found: Watched, layer: str) -> str:
    """Say how many heads lean otherwise in both situations, and how many of random networks do."""
    counts = dict[str, str]()
    for kind in ("trained", "random"):
        keys = [key for key in found.lean if key[0] == kind and key[2][0] == layer]
        pairs = {(key[2], key[3]) for key in keys}
        clear = 0
        for key, k in pairs:
            tight, free = (found.lean[kind, name, key, k] for name in BOUND_BY)
            apart = estimate([a - b for a, b in zip(tight, free, strict=True)])
            clear += apart.low * apart.high > 0
        counts[kind] = f"{clear} of {len(pairs)}"
    return f"| {LAYERS[layer]} | {counts['trained']} | {counts['random']} |"


def mean_difference(found: Watched, kind: str, layer: str, feature: str, k: int) -> float:
    """Return the mean over the heads of how much more they lean where deadlines bind."""
    keys = [key for *_, key, _ in found.lean if key[:2] == (layer, feature)]
    tight, free = (
        np.mean([found.lean[kind, name, key, k] for key in sorted(set(keys))]) for name in BOUND_BY
    )
    return float(tight - free)


def agreement(found: Watched) -> tuple[list[str], int]:
    """Return, by layer and feature, the mean difference over the heads of each training, and how
    many have one sign in all of them and lie outside of the range of random weights.
    """
    lines = ["| layer | feature | training 0 | training 1 | training 2 | random weights |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    readings = 0
    for layer, features in FEATURES.items():
        for feature in features:
            means, random = (
                [mean_difference(found, kind, layer, feature, k) for k in TRAINED]
                for kind in ("trained", "random")
            )
            one_sign = len({np.sign(each) for each in means}) == 1
            readings += one_sign and (min(means) > max(random) or max(means) < min(random))
            cells = [*(f"{m:+.3f}" for m in means), f"{min(random):+.3f} to {max(random):+.3f}"]
            lines.append(f"| {layer} | {feature} | {' | '.join(cells)} |")
    return lines, readings


def drawn(found: Watched) -> str:
    """Return the picture: what tasks look at, by type of device."""
    names = list(dict.fromkeys(name for _, _, name in found.classes))
    x = replace(
        across(-0.5, len(names) - 0.5, "device"),
        ticks=tuple(range(len(names))), write=lambda k: names[round(k)],
    )  # fmt: skip
    rows = []
    for kind in ("trained", "random"):
        for name in BOUND_BY:
            values = [float(np.mean(found.classes[kind, name, each])) for each in names]
            rows.append(Row(f"{kind}, {name} bind{'s' * (name == 'energy')}", [*enumerate(values)]))
    high = 1.05 * max(value for row in rows for _, value in row.points)
    y = upward(0.0, high, "attention over equal shares")
    return picture(rows, x, y, "what the tasks of hgnn look at, by type of device")


def layer_table(found: Watched) -> list[str]:
    """Return by layer how wide it looks, how much it changes, and what equal shares cost."""
    lines = [
        "## How wide a layer looks, and how much it changes",
        "",
        "Width: 1 where all is looked at alike. Change: share of the attention that goes elsewhere "
        "when energy binds instead of deadlines. Loss: objective with equal shares in that layer, "
        "% above; nothing was trained for that, so that it rather overstates the layer.",
        "",
        "| layer | width, trained | width, random | change, trained | change, random | loss where "
        "deadlines bind | loss where energy binds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for layer in (*LAYERS, "all four"):
        cells = []
        if layer in LAYERS:
            for kind in ("trained", "random"):
                both = [found.focus[kind, name, layer] for name in BOUND_BY]
                cells.append(f"{np.mean(both):.2f}")
            cells += [shown(found.change[kind, layer], 3) for kind in ("trained", "random")]
        cells += [""] * (4 - len(cells))
        cells += [percent(found.worth[layer, name]) for name in BOUND_BY]
        lines.append(f"| {LAYERS.get(layer, layer)} | {' | '.join(cells)} |")
    return lines


def page(found: Watched) -> str:
    table, readings = agreement(found)
    count = sum(map(len, FEATURES.values()))
    worth = [percent(found.worth["all four", name]) for name in BOUND_BY]
    lines = page_head("What the attention of hgnn looks at", "python benchmarks/hgnn_attention.py")
    lines += [
        f"The same jobs twice: `{BOUND_BY['deadlines']}` and `{BOUND_BY['energy']}`, report seeds "
        f"{SEEDS[0]} to {SEEDS[-1]}, networks of training seeds {TRAINED[0]} to {TRAINED[-1]}, and "
        "three of random weights, each layer with the mean and the deviation of a trained one. "
        "Measures are explained in `benchmarks/hgnn_attention.py`.",
        "",
        f"**In short**: {readings} of {count} differences between both situations have one sign in "
        "all trainings and lie outside of what random weights show; only those can be read as "
        f"looking elsewhere. With equal shares in all four layers the objective is {worth[0]} % "
        f"higher where deadlines bind and {worth[1]} % where energy does: this is what the weights "
        "of attention are worth here.",
        "",
        "![attention by type of device](hgnn_attention.svg)",
        "",
        *layer_table(found),
        "",
        f"The heads of the cluster are named {', '.join(LEVEL_HEADS)}; no loss ties a head to its "
        "name, and heads of different trainings have nothing in common but their number.",
        "",
        "## Heads that tell the situations apart",
        "",
        "Pairs of a head and a feature whose difference between both situations has an interval "
        "without zero (over five instances; about one in twenty would by chance).",
        "",
        "| layer | trained | random weights |",
        "| --- | --- | --- |",
        *(told_apart(found, layer) for layer in FEATURES),
        "",
        "Mean difference over the heads, where deadlines bind less where energy does; of random "
        "weights the range of three. Only what has one sign in all trainings and lies outside of "
        "that range can be called a reading.",
        "",
        *table,
        "",
        "## Head by head",
        "",
        "Where deadlines bind / where energy does, means over the instances.",
        "",
        *lean_table(found),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    found = watch()
    (RESULTS / "hgnn_attention.svg").write_text(drawn(found), encoding="utf-8")
    text = page(found)
    (RESULTS / "hgnn_attention.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
