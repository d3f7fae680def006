"""The workers that ``optbench train`` gives calls to, and what they did."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.backend import uses_ray
from optbench.cli.terminal.parser import UsageError
from optbench.compiling.compile_meter import announce

if TYPE_CHECKING:
    from optbench.execute.worker_pools.worker_pool import Staff
    from optbench.learn.work_pool import WorkPool
    from optbench.plugins.training import Trainable


def refuse_nothing_to_distribute(name: str, solver: Trainable, args: argparse.Namespace) -> None:
    """Refuse workers for a training that has no calls for them."""
    asked = "--backend ray" if uses_ray(args) else f"-n {args.jobs}"
    if solver.distributes is None and (uses_ray(args) or (args.jobs or 1) > 1):
        raise UsageError(
            f"{asked}: training {name!r} has nothing to distribute: {solver.nothing_to_distribute};"
            f" leave out {asked}, and it trains in this process"
        )


@contextmanager
def training_pool(
    solver: Trainable, args: argparse.Namespace, stop: threading.Event
) -> Iterator[WorkPool]:
    """A pool by ``--backend`` and ``--jobs``."""
    from optbench.learn.work_pool import OneProcess

    kernels = tuple(sorted(solver.needs_in_training or solver.needs))
    if uses_ray(args):
        from optbench.execute.ray_cluster.connection import connected
        from optbench.execute.ray_cluster.like_nodes import LikeNodes
        from optbench.execute.worker_pools.ray_staff import RayStaff

        with connected(args.address) as cluster:
            like = LikeNodes(cluster)
            nodes = like.alive()
            workers = args.jobs or int(sum(node.cpus for node in nodes))
            announce(f"{workers} workers for {solver.distributes} on {len(nodes)} nodes")
            with _staffed(RayStaff(like, kernels), workers, stop) as pool:
                yield pool
    elif (args.jobs or 1) > 1:
        from optbench.execute.worker_pools.process_staff import ProcessStaff

        with _staffed(ProcessStaff(kernels), args.jobs, stop) as pool:
            yield pool
    else:
        yield OneProcess()


def _staffed(staff: Staff, workers: int, stop: threading.Event) -> Any:
    from optbench.execute.worker_pools.worker_pool import StaffedPool

    return StaffedPool(staff, workers, stop, announce)


def pool_figures(pool: WorkPool, spent_s: float) -> dict[str, Any]:
    """What the workers of a training of ``spent_s`` seconds did; empty where it had none.

    The speed-up is over the same training where every call had waited for the one before:
    (time of the training − waiting for workers + their calls one after another) / its time.
    """
    from optbench.execute.worker_pools.worker_pool import StaffedPool

    if not isinstance(pool, StaffedPool):
        return {}
    figures = pool.figures
    return {
        "workers": pool.workers,
        "worker_calls": dict(sorted(figures.calls.items())),
        "workers_lost": figures.lost,
        "calls_s": round(figures.busy_s, 3),
        "waited_for_calls_s": round(figures.waited_s, 3),
        "speed_up": round((spent_s - figures.waited_s + figures.busy_s) / spent_s, 3),
    }
