"""The bank of bounds before and after a run: what earlier runs proved, and what this one adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optbench.bounds.bank.bank_entries import Origin
from optbench.bounds.bank.bound_bank import BoundBank
from optbench.bounds.bank.seals import versions
from optbench.bounds.proving import remember
from optbench.errors import ContradictionError
from optbench.model.files.strict_json import jsonable
from optbench.plugins.protocol import BANKED, Run, Solver


def origin_of(solver: Solver, name: str, budget: Mapping[str, Any]) -> Origin:
    """The origin of a solver's own bounds: its module, settings and versions of libraries."""
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
            raise ContradictionError(
                f"{run.instance.name}: {run.infeasibility_words()} reported that no schedule "
                f"exists, but the bank holds a verified one with objective {best[0]!r}"
            )
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
