"""Where the excess comes from: each cause's Shapley value.

Let v(F) be the certified least energy where only the freedoms F are given. v(∅) is what the record
drew, but for GPUs that idled until its last run had ended; v(all) is the bound. What a freedom
saves depends on what is freed already (a lower clock needs the time that runs waited), so the share
of a cause c is the mean of v(F) − v(F ∪ {c}) over all orders of giving the freedoms:

    share(c) = Σ_{F ∌ c} |F|! (k − |F| − 1)! / k!  (v(F) − v(F ∪ {c}))          k freedoms

The shares add up to the excess exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from math import factorial

from optbench.audit.least_energy import groups_of, least_energy, sojourn_of
from optbench.audit.log import FREEDOMS
from optbench.audit.logged_cluster import LoggedCluster


def shapley(players: Iterable[str], value: Callable[[frozenset[str]], float]) -> dict[str, float]:
    """What each player takes off the value, averaged over all orders."""
    names = tuple(players)
    k = len(names)
    subsets = [frozenset(chosen) for r in range(k + 1) for chosen in combinations(names, r)]
    known = {subset: value(subset) for subset in subsets}
    out = {}
    for name in names:
        others = [subset for subset in known if name not in subset]
        weight = {
            size: factorial(size) * factorial(k - size - 1) / factorial(k) for size in range(k)
        }
        out[name] = sum(
            weight[len(subset)] * (known[subset] - known[subset | {name}]) for subset in others
        )
    return out


def causes_of(cluster: LoggedCluster, free: frozenset[str], recorded_j: float) -> dict[str, float]:
    """Joules of excess by cause; what the GPUs drew until the record's last run had ended counts as
    idle.
    """
    names = tuple(name for name in FREEDOMS if name in free)
    last_s = min(groups_of(cluster, free)[2], float(cluster.log.end.max()))

    def value(subset: frozenset[str]) -> float:
        return least_energy(
            cluster, subset, sojourn_of(cluster.log, subset), last_s=last_s
        ).energy_j

    found = shapley(names, value)
    tail_j = recorded_j - value(frozenset())
    found["idle"] = found.get("idle", 0.0) + tail_j
    return {name: found[name] for name in FREEDOMS if name in found}
