"""The bounds of a GNN training instance by what it minimises: the cut, the step or the energy."""

from __future__ import annotations

from optbench.model.result import Bound
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.cut_bound import cut_bounds, prove_cut
from optbench.shapes.gnn_training_bound.step_bound import prove_step, step_bound


def training_bounds(
    data: GnnTraining, method: str, time_limit_s: float, best: TrainingPlan | None
) -> list[Bound]:
    """Return certified bounds, best first; ``best`` is the best plan known."""
    if data.minimize != "cut":
        return [step_bound(data)]
    known = None
    if best is not None:
        known = CutGraph(data.graph, best.part, data.num_parts).cut_edges
    wanted = {"cheap": "cheap", "combinatorial": "trees"}.get(method, "auto")
    return cut_bounds(data, time_limit_s, wanted, known)


def prove_training(data: GnnTraining, certificate: str) -> Bound:
    """Prove a bound again from a certificate."""
    if data.minimize != "cut":
        return prove_step(data, certificate)
    return prove_cut(data, certificate)
