"""The core's check of a run's claims: labels of bounds, infeasibility, and the bank of bounds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from optbench.bounds.bank.bank_entries import Origin
from optbench.bounds.bank.bound_bank import BoundBank
from optbench.bounds.bank.seals import versions
from optbench.bounds.infeasible import certify_infeasible
from optbench.bounds.proving import labelled, remember
from optbench.errors import ContradictionError
from optbench.model.files.strict_json import jsonable
from optbench.model.result import Bound
from optbench.plugins.protocol import Run, Solver

# Prefix of the source of a bound that an earlier run proved.
BANKED = "bank:"


def origin_of(solver: Solver, name: str, budget: Mapping[str, Any]) -> Origin:
    """The origin of a solver's own bounds: its module, its settings and the versions of its libraries.
    """
    settings = {"solver": name, "params": vars(solver), "budget": budget, "versions": versions()}
    return Origin(type(solver).__module__, json.dumps(jsonable(settings), sort_keys=True))


def take_banked(path: str | Path, run: Run) -> None:
    """Start from the bounds of earlier runs that still hold, and report those that were dropped."""
    with BoundBank(path) as bank:
        found = bank.bounds(run.instance)
        if bank.notices:
            run.info["bank"] = "; ".join(bank.notices)
    remember(run.instance, found)
    for known in found:
        run.take_bound(known, prefix=BANKED)


def bank_run(path: str | Path, run: Run, origin: Origin) -> None:
    """Store what this run found; a contradiction with an earlier run is an error."""
    with BoundBank(path) as bank:
        best = bank.incumbent(run.instance)
        if run.proven_infeasible and best is not None:
            words = f"{run.instance.name}: {words_of(run)} that no schedule exists, but the bank holds a verified one"
            raise ContradictionError(f"{words} with objective {best[0]!r}")
        bank.record(
            run.instance,
            [found for found in run.bounds if not found.source.startswith(BANKED)],
            origin,
        )
        if run.best is not None:
            bank.observe(run.instance, run.best)
        if bank.notices:
            run.info["bank"] = "; ".join(
                [*([run.info["bank"]] if "bank" in run.info else []), *bank.notices]
            )


def words_of(run: Run) -> str:
    """The words that name who reported that no schedule exists."""
    found = run.infeasibility
    return "nobody says" if found is None else f"{found.source} says ({found.proof})"


def certify_claim(run: Run, time_limit_s: float) -> None:
    """Let the core look for its own proof where a solver reports that no schedule exists."""
    if run.infeasibility is None:
        return
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
