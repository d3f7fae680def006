"""Cuts on work between two times (``model.time_cuts``) as rows of the CP model, and the literals to
branch on before clocks.

    area, chain    Σ w_ik p_ik x_ik ≤ room (right − left − wait)
    union          u_ir = Σ_{k on pool r} x_ik;  u_irn = Σ_{k on n devices of each pool r} x_ik

``left`` is 0 or the end of a task, ``right`` the start of a task, the makespan, or the end of time
where the model has no makespan. The unions change nothing in the model: they are what a search can
decide first, because the pool and the number of devices move the bound, and the clock hardly does.

Ticks that are rounded down would need other numbers: a coarse model has no cuts.
"""

from __future__ import annotations

from optbench.model.time_cuts import TimeCut, time_cuts
from optbench.views.cpsat.draft import Draft, Expression
from optbench.views.cpsat.scaling import MAX_SUM


def add_time_cuts(draft: Draft) -> None:
    """Add the strongest cuts."""
    if draft.coarse > 1:
        return
    for cut in time_cuts(draft.instance):
        task = draft.instance.pairs.task
        most: dict[int, int] = {}
        work: Expression = 0
        for row, weight in zip(cut.rows, cut.weights, strict=True):
            if draft.stand_in[row] == row:
                amount = weight * draft.duration[row]
                work += amount * draft.at(row)
                most[int(task[row])] = max(most.get(int(task[row]), 0), amount)
        if most and max(sum(most.values()), 4 * cut.room * draft.last) < MAX_SUM:
            draft.model.add(work <= cut.room * (_right(draft, cut) - _left(draft, cut) - cut.wait))


def _left(draft: Draft, cut: TimeCut) -> Expression:
    return 0 if cut.after is None else draft.end[cut.after]


def _right(draft: Draft, cut: TimeCut) -> Expression:
    if cut.before is not None:
        return draft.start[cut.before]
    return draft.makespan if draft.has_makespan else draft.last


def add_unions(draft: Draft) -> None:
    """Add the literals of each task's pools, and of its pools with numbers of devices."""
    for task in range(draft.instance.num_tasks):
        pools: dict[int, list[int]] = {}
        devices: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for row in draft.rows(task):
            need = draft.needs[draft.mode[row]]
            pools.setdefault(draft.primary[row], []).append(row)
            devices.setdefault(tuple(sorted(need.items())), []).append(row)
        for parts in (pools.values(), devices.values()):
            for rows in parts:
                draft.any_of(task, rows)
