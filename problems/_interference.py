"""A documented interference model: throughputs of any number of job types on any GPU generations.

Names: resources r (compute, memory bandwidth, cache, host), families f, job types t of a family
with batch size b, GPU generations g. N(0, s) is normal, drawn once per symbol from the seed of the
tables; the noise of a cell is fixed with the tables, and is no noise of a measurement.

Capacities, in those of the oldest generation, and memory:

    C[g, r] = (growth_r)^g exp N(0, 0.12)        growth = 1.9, 1.45, 1.5, 1.3
    M[g] = 12, 16, 16, 32, 48, 80 GB, ...

A step of a job of type t takes d[t, r] seconds of resource r of the oldest generation:

    d[t, r] = step_f a_{f,r} (φ_{f,r} + (1 − φ_{f,r}) b_t / b_f) exp N(0, 0.10)
    a_{f,r} = exp N(0, 0.9), scaled so that the largest is 1        step_f = 0.1 exp N(0, 1.0) s
    φ_{f,r} uniform in 0 to 0.6; in 0.3 to 1 for the host           b_f the family's middle batch

The resources overlap imperfectly (p-norm, p = 4), and use u is the share of the step in which a
resource works:

    τ[g, t] = (Σ_r (d[t, r] / C[g, r])^p)^(1/p)          u[g, t, r] = d[t, r] / C[g, r] / τ[g, t]
    alone[g, t] = exp N(0, 0.05) / τ[g, t]

Beside s, each resource of t is stretched by what both use beyond its capacity, and by interference
that grows with the use of s below it:

    e[g, t, s, r] = max(1, u[g, t, r] + u[g, s, r]) (1 + i_r u[g, s, r])
    i = 0.10, 0.25, 0.35, 0.10
    ratio[g, t, s] = min(1, exp N(0, noise) / (Σ_r (u[g, t, r] e[g, t, s, r])^p)^(1/p))

The noise is 0.05 unless stated. A job takes m_f + n_f b / b_f GB, with m_f = exp N(log 1.0, 0.5)
and n_f = exp N(log 1.8, 0.8), and at most 0.9 of the smallest memory; a pair fits on g where both
together take at most M[g]. The user states the name, the family and the batch size, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError
from optbench.shapes.colocation.colocation_data import Floats, Ints, JobType

from ._throughput_tables import ThroughputTables

RESOURCES = ("compute", "bandwidth", "cache", "host")
GROWTH = np.array([1.9, 1.45, 1.5, 1.3])
INTERFERENCE = np.array([0.10, 0.25, 0.35, 0.10])
MEMORY_GB = (12.0, 16.0, 16.0, 32.0, 48.0, 80.0)
OVERLAP = 4.0
SIZES_OF_FAMILY = 6


@dataclass(frozen=True)
class ResourceDemands:
    """What the user does not know: seconds of each resource per step, and memory."""

    seconds: Floats
    memory_gb: Floats


def interference_tables(
    num_types: int = 200, num_generations: int = 4, seed: int = 0, noise: float = 0.05
) -> ThroughputTables:
    """Return the tables of this many job types, in families of six batch sizes."""
    if num_types < 1 or num_generations < 1:
        raise ParameterError(
            f"num_types is {num_types} and num_generations {num_generations}; both must be at "
            "least 1"
        )
    rng = np.random.default_rng(seed)
    capacity = GROWTH ** np.arange(num_generations)[:, None]
    capacity = capacity * np.exp(0.12 * rng.standard_normal(capacity.shape))
    memory = np.array([memory_gb(g) for g in range(num_generations)])
    family = np.arange(num_types) // SIZES_OF_FAMILY
    types, relative = _job_types(rng, family)
    demands = _demands(rng, family, relative, float(memory[0]))
    use, step_s = _uses(demands.seconds, np.asarray(capacity, dtype=float))
    alone = np.exp(0.05 * rng.standard_normal(step_s.shape)) / step_s
    ratio = _ratios(use, noise * rng.standard_normal((num_generations, num_types, num_types)))
    together = demands.memory_gb[:, None] + demands.memory_gb[None, :]
    fits = together[None] <= memory[:, None, None]
    beside = np.where(fits, ratio * alone[:, :, None], 0.0)
    names = tuple(f"gen{g}" for g in range(num_generations))
    return ThroughputTables(names, types, alone, beside)


def memory_gb(generation: int) -> float:
    """Memory of a GPU generation: the last ones double it."""
    extra = max(0, generation - len(MEMORY_GB) + 1)
    return MEMORY_GB[min(generation, len(MEMORY_GB) - 1)] * 2.0**extra


def _job_types(rng: np.random.Generator, family: Ints) -> tuple[tuple[JobType, ...], Floats]:
    """Types with their batch sizes, and these relative to the middle one of the family."""
    middle = 2.0 ** rng.integers(4, 8, family.max() + 1)
    place = np.arange(len(family)) % SIZES_OF_FAMILY
    relative: Floats = np.asarray(2.0 ** (place - SIZES_OF_FAMILY // 2), dtype=float)
    batch = middle[family] * relative
    types = tuple(
        JobType(f"Net-{f:02d} (batch size {b:g})", f"Net-{f:02d}", float(b))
        for f, b in zip(family.tolist(), batch.tolist(), strict=True)
    )
    return types, relative


def _demands(
    rng: np.random.Generator, family: Ints, relative: Floats, smallest_gb: float
) -> ResourceDemands:
    num_families = int(family.max()) + 1
    share = np.exp(0.9 * rng.standard_normal((num_families, len(RESOURCES))))
    share /= share.max(axis=1, keepdims=True)
    fixed = rng.uniform(0.0, 0.6, share.shape)
    fixed[:, -1] = rng.uniform(0.3, 1.0, num_families)
    step_s = 0.1 * np.exp(rng.standard_normal(num_families))
    scale = fixed[family] + (1 - fixed[family]) * relative[:, None]
    own = np.exp(0.10 * rng.standard_normal(scale.shape))
    seconds = step_s[family, None] * share[family] * scale * own
    base = np.exp(0.5 * rng.standard_normal(num_families))
    data = 1.8 * np.exp(0.8 * rng.standard_normal(num_families))
    memory = np.minimum(base[family] + data[family] * relative, 0.9 * smallest_gb)
    return ResourceDemands(seconds, memory)


def _uses(seconds: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """u[g, t, r] and τ[g, t]."""
    time_s = seconds[None] / capacity[:, None, :]
    step_s = (time_s**OVERLAP).sum(axis=2) ** (1 / OVERLAP)
    return time_s / step_s[:, :, None], step_s


def _ratios(use: Floats, noise: Floats) -> Floats:
    """ratio[g, t, s]."""
    mine, theirs = use[:, :, None, :], use[:, None, :, :]
    stretched = np.maximum(1.0, mine + theirs) * (1 + INTERFERENCE * theirs)
    slower = ((mine * stretched) ** OVERLAP).sum(axis=3) ** (1 / OVERLAP)
    out: Floats = np.minimum(1.0, np.exp(noise) / slower)
    return out
