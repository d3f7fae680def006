"""Shapes of task graphs: random graphs, and patterns of GPU jobs with roles.

Edges are pairs (before, after) with before < after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Edges = list[tuple[int, int]]
Rng = np.random.Generator
# The role of a task in its job: any, preparation of data, training, inference, or a reduction of
# the replicas' results.
Role = Literal["any", "prepare", "train", "infer", "reduce"]


@dataclass(frozen=True)
class Graph:
    """Edges, the role of each task, and teams and bundles.

    Tasks of one team have the same work; edges of one bundle carry the same volume."""

    edges: Edges
    roles: list[Role]
    teams: list[int]
    bundles: list[int]


def layered(rng: Rng, n: int) -> Edges:
    """About as many layers as tasks per layer; a task follows one to three of the layer before."""
    width = max(1, round(n**0.5))
    bounds = [0]
    while bounds[-1] < n:
        bounds.append(
            min(n, bounds[-1] + int(rng.integers(max(1, width // 2), width + width // 2 + 1)))
        )
    edges: Edges = []
    for q in range(1, len(bounds) - 1):
        above = np.arange(bounds[q - 1], bounds[q])
        for j in range(bounds[q], bounds[q + 1]):
            parents = rng.permutation(above)[: int(rng.integers(1, 4))]
            edges += [(i, j) for i in sorted(parents.tolist())]
    return edges


def fork_join(rng: Rng, n: int) -> Edges:
    """Blocks in a row: a task forks into two to five parallel ones, which the next block joins."""
    edges: Edges = []
    opener = 0
    while opener < n - 1:
        branches = list(range(opener + 1, min(n, opener + 1 + int(rng.integers(2, 6)))))
        join = branches[-1] + 1
        edges += [(opener, j) for j in branches]
        if join < n:
            edges += [(i, join) for i in branches]
        opener = join
    return edges


def chains(rng: Rng, n: int) -> Edges:
    """Pipelines of two to five tasks, side by side."""
    edges: Edges = []
    begin = 0
    while begin < n:
        end = min(n, begin + int(rng.integers(2, 6)))
        edges += [(i, i + 1) for i in range(begin, end - 1)]
        begin = end
    return edges


def scattered(rng: Rng, n: int) -> Edges:
    """Each pair is an edge with a probability such that a task has two successors on average."""
    share = min(1.0, 4.0 / max(1, n - 1))
    return [
        (i, j) for i in range(n) for j in np.flatnonzero(rng.random(n) < share).tolist() if j > i
    ]


def independent(rng: Rng, n: int) -> Edges:
    """No edges."""
    return []


SHAPES: dict[str, Callable[[Rng, int], Edges]] = {
    "layered": layered,
    "fork_join": fork_join,
    "chains": chains,
    "random": scattered,
    "independent": independent,
}


def plain(edges: Edges, n: int) -> Graph:
    """A graph of tasks without roles."""
    return Graph(edges, ["any"] * n, list(range(n)), list(range(len(edges))))


def pipeline(n: int, stages: int) -> Graph:
    """Jobs side by side, each a chain of the same stages: data are prepared, models trained,
    results inferred.
    """
    last: Role = "infer" if stages > 2 else "train"
    of_stage: list[Role] = ["prepare", *["train"] * (stages - 2), last]  # type: ignore[list-item]
    edges = [(i, i + 1) for i in range(n - 1) if (i + 1) % stages]
    return Graph(
        edges, [of_stage[i % stages] for i in range(n)], list(range(n)), list(range(len(edges)))
    )


def data_parallel(n: int, replicas: int, iterations: int) -> Graph:
    """Jobs side by side: preparation, then in each iteration equal replicas on shards of the data,
    and one reduction.

    The last job is cut to fit n tasks: fewer iterations, and fewer replicas in its last one (one
    alone needs no reduction).
    """
    out = Graph([], [], [], [])
    while len(out.roles) < n:
        opener = _add(out, "prepare")
        for _ in range(iterations):
            left = n - len(out.roles)
            if left == 0:
                break
            width = min(replicas, max(1, left - 1))
            team = [_add(out, "train", len(out.roles) - k) for k in range(width)]
            _join(out, [(opener, task) for task in team])
            if len(out.roles) < n:
                opener = _add(out, "reduce")
                _join(out, [(task, opener) for task in team])
    return out


def _add(graph: Graph, role: Role, team: int | None = None) -> int:
    graph.roles.append(role)
    graph.teams.append(len(graph.roles) - 1 if team is None else team)
    return len(graph.roles) - 1


def _join(graph: Graph, edges: Edges) -> None:
    """Edges that carry the same."""
    graph.bundles.extend([len(graph.edges)] * len(edges))
    graph.edges.extend(edges)


def with_preparation(graph: Graph, rng: Rng) -> Graph:
    """Give the role of preparation to tasks without predecessors that have successors.

    In a graph without edges, three tasks in ten get it."""
    later, earlier = {j for _, j in graph.edges}, {i for i, _ in graph.edges}
    n = len(graph.roles)
    opens = (
        [i in earlier and i not in later for i in range(n)]
        if graph.edges
        else (rng.random(n) < 0.3).tolist()
    )
    return Graph(
        graph.edges,
        ["prepare" if opens[i] else graph.roles[i] for i in range(n)],
        graph.teams,
        graph.bundles,
    )
