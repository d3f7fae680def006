"""The core's check of a run's claims: labels of bounds, and infeasibility."""

from __future__ import annotations

from dataclasses import replace

from optbench.bounds.proving import labelled
from optbench.model.result import Bound
from optbench.plugins.protocol import Run

# Prefix of the source of a bound that an earlier run proved.
BANKED = "bank:"


def infeasibility_words(run: Run) -> str:
    """Source and proof of the report that no schedule exists."""
    found = run.infeasibility
    return "no source" if found is None else f"{found.source} ({found.proof})"


def certify_claim(run: Run, time_limit_s: float) -> None:
    """Let the core look for its own proof where a solver reports that no schedule exists."""
    if run.infeasibility is None:
        return
    from optbench.bounds.infeasible import certify_infeasible

    claim = replace(run.infeasibility, proof="solver", certificate=None)
    run.infeasibility = certify_infeasible(run.instance, time_limit_s) or claim


def labelled_bounds(run: Run) -> list[Bound]:
    """The bounds of a run, best first, each under the label that the core finds for it."""
    found = []
    for bound in reversed(run.bounds):
        again = labelled(run.instance, bound)
        banked = bound.source.startswith(BANKED) and not again.source.startswith(BANKED)
        found.append(replace(again, source=BANKED + again.source) if banked else again)
    return found
