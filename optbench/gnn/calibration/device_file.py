"""Fitted cores as a file of devices, which ``gnn_training:devices=FILE.json`` reads.

A device of relative speed s is the fitted core at work for the share s of the time: its rates are s
times as high, a launch takes 1 / s times as long, and its power above idle is s times as high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from optbench.gnn.calibration.core_fit import FittedCore
from optbench.gnn.calibration.step_samples import StepSample
from optbench.shapes.gnn_training.training_data import TrainingDevice
from optbench.shapes.protocol.plain_data import to_plain


def throttled(core: TrainingDevice, speed: float, name: str) -> TrainingDevice:
    """The core at work for a share of the time."""
    return replace(
        core,
        name=name,
        gflops=core.gflops * speed,
        gb_per_s=core.gb_per_s * speed,
        launch_s=core.launch_s / speed,
        alpha_w=core.alpha_w * speed,
        beta_w=core.beta_w * speed,
        gamma_w=core.idle_w + (core.gamma_w - core.idle_w) * speed,
    )


def device_document(
    found: FittedCore, speeds: Sequence[float], samples: Sequence[StepSample], about: dict[str, Any]
) -> dict[str, Any]:
    """The file: devices of these relative speeds, their links, and where the figures come from."""
    devices = [throttled(found.core, s, f"core{k}") for k, s in enumerate(speeds)]
    rows = [
        {
            "nodes": each.data.graph.num_nodes,
            "edges": each.data.graph.num_edges,
            "cores": each.data.num_devices,
            "measured_s": each.seconds,
            "estimate_s": each.seconds * (1 + error),
        }
        for each, error in zip(samples, found.errors, strict=True)
    ]
    document: dict[str, Any] = {"devices": [to_plain(each) for each in devices]}
    if found.gb_per_s is not None:
        links = {"gb_per_s": found.gb_per_s, "latency_s": found.latency_s, "overlap": 0.0}
        document["links"] = links
    return {**document, "about": {**about, "samples": rows}}
