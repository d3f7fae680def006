"""The figures of a core and of its link that fit measured steps.

Of a core: rate F, bandwidth B and seconds of a launch L, on samples T_i of one core,

    min Σ_i ( ln(t_i(F, B, L) / T_i) )² + ε² ((ln F/F₀)² + (ln B/B₀)² + (ln L/L₀)²)

where t_i is the step of the cost model; the second sum decides where samples do not. Of a link:
latency l and seconds per byte u, on samples of two cores, whose step is linear in both,

    min Σ_i ( (w_i + a_i l + b_i u) / T_i − 1 )²,   l, u ≥ 0

with w_i the step of the cost model without exchange. Computing hides some of the exchange, and the
link is what remains of it: ``overlap`` is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optbench.gnn.calibration.step_samples import StepSample
from optbench.shapes.gnn_training.operator_costs import costs_of_plan
from optbench.shapes.gnn_training.step_costs import GIGA, part_seconds, step_costs
from optbench.shapes.gnn_training.training_data import DeviceLinks, Floats, TrainingDevice

PRIOR = 5e-4
# The launch from which the fit starts, and by which factor figures may differ from the first ones.
FIRST_LAUNCH_S, MOST_FACTOR = 1e-5, 1e3
MOST_GB_PER_S = 1000.0


@dataclass(frozen=True)
class FittedCore:
    """A core, its link to an equal one, and how far samples are from the estimate.

    Where no sample has two cores there is no link.
    """

    core: TrainingDevice
    gb_per_s: float | None
    latency_s: float | None
    errors: tuple[float, ...]

    @property
    def largest_error(self) -> float:
        return max(map(abs, self.errors))


def fit_core(samples: Sequence[StepSample]) -> FittedCore:
    """Fit the core on samples of one core, then the link on those of two."""
    core = _core([each for each in samples if each.data.num_devices == 1])
    pairs = [each for each in samples if each.data.num_devices == 2]
    link = _link(pairs, core) if pairs else None
    errors = tuple(estimate_s(each, core, link) / each.seconds - 1 for each in samples)
    gb_per_s, latency_s = link or (None, None)
    return FittedCore(core, gb_per_s, latency_s, errors)


def estimate_s(
    sample: StepSample, core: TrainingDevice, link: tuple[float, float] | None = None
) -> float:
    """The cost model's step of a sample; ``link`` is (GB/s, latency), none takes no time."""
    count = sample.data.num_devices
    gb_per_s, latency_s = link or (np.inf, 0.0)
    square = (count, count)
    links = DeviceLinks(np.full(square, gb_per_s), np.full(square, latency_s))
    data = replace(sample.data, devices=(core,) * count, links=links)
    return step_costs(data, sample.plan).step_s


def _core(samples: Sequence[StepSample]) -> TrainingDevice:
    from scipy.optimize import least_squares

    first = samples[0].data.devices[0]
    kernels = [
        costs_of_plan(each.data.operators, each.data.fusions, each.plan.fusions.tolist())
        for each in samples
    ]

    def core(x: Floats) -> TrainingDevice:
        rate, moved, launch = np.exp(x).tolist()
        return replace(
            first,
            gflops=first.gflops * rate,
            gb_per_s=first.gb_per_s * moved,
            launch_s=FIRST_LAUNCH_S * launch,
        )

    def residuals(x: Floats) -> Floats:
        device = core(x)
        ratios = []
        for costs, each in zip(kernels, samples, strict=True):
            nodes, arcs = float(each.data.graph.sizes.sum()), 2.0 * each.data.graph.num_edges
            seconds = part_seconds(costs, nodes, arcs, device, device.clocks[-1])
            ratios.append(np.log(seconds / each.seconds))
        return np.concatenate([ratios, PRIOR * x])

    far = np.log(MOST_FACTOR)
    # From several starts: a roofline has a kink where flops and bytes take equally long.
    starts = [np.array([rate, moved, 0.0]) for rate in (-1.0, 1.0) for moved in (-1.0, 1.0)]
    found = [least_squares(residuals, each, bounds=(-far, far)) for each in starts]
    return core(min(found, key=lambda each: float(each.cost)).x)


def _link(samples: Sequence[StepSample], core: TrainingDevice) -> tuple[float, float]:
    """(GB/s, latency) of the link."""
    from scipy.optimize import nnls

    rows = []
    for each in samples:
        alone = estimate_s(each, core)
        per_latency = estimate_s(each, core, (np.inf, 1.0)) - alone
        per_byte_s = (estimate_s(each, core, (1.0, 0.0)) - alone) * GIGA
        rows.append((per_latency, per_byte_s / GIGA, each.seconds - alone, each.seconds))
    table = np.array(rows)
    # Columns in seconds of latency and of GB; each row relative to its measured seconds.
    found, _ = nnls(table[:, :2] / table[:, 3:], np.maximum(table[:, 2] / table[:, 3], 0.0))
    latency_s, s_per_gb = (float(each) for each in found)
    return 1.0 / max(s_per_gb, 1.0 / MOST_GB_PER_S), latency_s
