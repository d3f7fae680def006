"""Power of GPU types and assumed utilisation of jobs, for problem ``colocation``.

Power is that of a device profile: asleep, idle, and at full use 85 % of the board power, which is
what work of training draws in the shipped profiles. Tables of throughputs hold no power.

**Utilisation is an assumption.** It is stated from the features of a job type alone, its family and
batch size, is the same on every GPU type, and is never derived from throughputs. With b a batch
size and [b0, b1] those of the family in the tables,

    feature   low + (high − low) (log b − log b0) / (log b1 − log b0), the middle where b0 = b1;
              low and high are those of the family's domain in DOMAIN_RANGES
    flat      FLAT for every job type
    inverse   the values of ``feature`` mirrored within their range: least for what had the most

``flat`` and ``inverse`` are for the repeats of a result, which has to hold under all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from optbench.errors import FileFormatError
from optbench.power.profiles import ALIASES, profile, profile_names
from optbench.shapes.colocation.colocation_data import Floats, GpuType, JobType

Utilisation: TypeAlias = Literal["feature", "flat", "inverse"]
UTILISATIONS = ("feature", "flat", "inverse")
# Power of a GPU in full use, as a share of the board power.
FULL_SHARE = 0.85
# Profiles of the GPU types in Gavel's tables; a K80 there is one of the two GPUs of a board.
GAVEL_PROFILES = {"v100": "V100-PCIe", "p100": "P100", "k80": "K80"}
# Profiles of synthetic generations, from the oldest on; later ones have the last.
GENERATION_PROFILES = ("K80", "P100", "V100-PCIe", "A100-PCIe", "H100-SXM", "H200")
# Assumed utilisation at the smallest and the largest batch of a family.
DOMAIN_RANGES = {
    "ResNet": (0.60, 0.95),
    "CycleGAN": (0.60, 0.95),
    "LM": (0.45, 0.85),
    "Transformer": (0.45, 0.85),
    "Recommendation": (0.30, 0.70),
    "A3C": (0.20, 0.40),
}
OTHER_RANGE = (0.40, 0.90)
FLAT = 0.65


def gpu_types(
    names: Sequence[str], counts: Sequence[int], profiles: Mapping[str, str], where: str
) -> tuple[GpuType, ...]:
    """Return the GPU types with the powers of their profiles; ``where`` names the tables."""
    out = []
    for name, count in zip(names, counts, strict=True):
        device = profile(profiles[name] if name in profiles else _profile_name(name, where))
        full_w = max(device.idle_w, FULL_SHARE * device.tdp_w)
        out.append(GpuType(name, count, device.sleep_w, device.idle_w, full_w))
    return tuple(out)


def _profile_name(gpu_type: str, where: str) -> str:
    """The shipped profile of the same name, capitals aside."""
    known = {name.lower(): name for name in (*profile_names(), *ALIASES, *GAVEL_PROFILES)}
    if gpu_type.lower() not in known:
        raise FileFormatError(
            f"{where}: GPU type {gpu_type!r} has no power profile; name one in a column "
            f"'profile', a file or one of {', '.join(profile_names())}"
        )
    found = known[gpu_type.lower()]
    return GAVEL_PROFILES.get(found, found)


def generation_profiles(names: Sequence[str]) -> dict[str, str]:
    """Return the power profiles of generations, from the oldest to the newest."""
    last = len(GENERATION_PROFILES) - 1
    return {name: GENERATION_PROFILES[min(k, last)] for k, name in enumerate(names)}


def utilisation(job_types: Sequence[JobType], num_gpu_types: int, assumed: Utilisation) -> Floats:
    """Return the assumed utilisation by GPU type and job type."""
    batches: dict[str, list[float]] = {}
    for each in job_types:
        batches.setdefault(each.family, []).append(each.batch_size)
    ends = {family: (min(sizes), max(sizes)) for family, sizes in batches.items()}
    values = np.array([_of_features(each, *ends[each.family]) for each in job_types])
    if assumed == "flat":
        values = np.full(len(values), FLAT)
    elif assumed == "inverse":
        values = values.min() + values.max() - values
    return np.tile(values, (num_gpu_types, 1))


def _of_features(one: JobType, least: float, most: float) -> float:
    """Utilisation of a job type, from its batch size among those of the family."""
    low, high = DOMAIN_RANGES.get(one.family, OTHER_RANGE)
    if least == most:
        return (low + high) / 2
    share = np.log(one.batch_size / least) / np.log(most / least)
    return float(low + (high - low) * share)
