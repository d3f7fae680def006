"""Table of the compiled functions that Python calls, each with its one signature; solvers, policies
and bounds name what they need.

``prepare`` loads what is named and compiles what is not cached. It runs before a clock starts: in
``solve``, ``simulate``, ``bound``, ``pareto``, ``train``, the audit, and the process from which a
study's cells are forked.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from optbench.compiling.compile_meter import (
    announce,
    announcing,
    compiled_s,
    metered,
    no_announcement,
)
from optbench.compiling.compiled_entries import Argument, CompiledEntry, Kernel, NamedColumns
from optbench.compiling.second_process import share_of_this_process
from optbench.errors import UnknownNameError

# Seconds that a process waits for another that compiles, and between two checks of its lock.
MOST_WAITING_S, LOOK_S = 180.0, 0.1
# A lock for the threads of one process.
_LOCK = threading.Lock()
# Tables of pointers are passed from Python as rows of addresses; tables of many environments as a
# matrix.
ROW, ROWS, FLAGS = "int64[::1]", "int64[:,::1]", "boolean[::1]"
FLOATS, SINGLES = "float64[::1]", "float32[::1]"


def _entry(module: str, name: str, *arguments: Argument) -> CompiledEntry:
    return CompiledEntry(module, name, arguments)


def _tuple(*each: str) -> str:
    return f"Tuple(({', '.join(each)},))"


PARTS = "optbench.sim.kernel"
PROPAGATE = "optbench.bounds.combinatorial.propagate"
LP_SEARCH = "optbench.plugins.solvers._lp_search"
PRIMAL = "optbench.sim.primal"
PARTITION = "optbench.plugins.solvers.mis_spectral"
CUT = "optbench.shapes.gnn_training_bound"
SDP, VECTORS, SIGNS = f"{CUT}.cut_sdp_kernels", "float32[:,::1]", "float64[:,::1]"
GRAPH = NamedColumns(f"{PRIMAL}.chance", "TaskGraph", (ROW,) * 5)
DEMANDS = NamedColumns(f"{PRIMAL}.serial_schedules", "Demands", (ROW, ROWS, ROW, ROW))
SHOP_SEARCH = (
    *(ROWS, ROW, ROW, ROWS, ROWS, "int32[:,::1]", "int32[:,::1]", ROW, "int64", "int64"),
)
PROJECT_SEARCH = (ROW, ROW, ROWS, ROWS, *[ROW] * 6, "int64", "int64")
DEDUCTION_TABLES = (_tuple(*[ROW] * 2), _tuple(*[ROW] * 3), _tuple(*[ROW] * 7))

KERNELS = {
    "rules": Kernel(
        "list rules",
        (_entry(f"{PARTS}.dispatch", "run", *[ROW] * 3, "float64"),),
        ("optbench.sim.rules",),
    ),
    "arrivals": Kernel(
        "list rules that are made again at each arrival",
        (
            _entry(f"{PARTS}.dispatch", "run", *[ROW] * 3, "float64"),
            _entry(f"{PARTS}.dispatch", "go_on", *[ROW] * 3, FLOATS, "float64"),
        ),
        ("optbench.sim.renumbered_rules",),
    ),
    "decisions": Kernel(
        "decisions in Python",
        (
            _entry(f"{PARTS}.moments", "first_moment", *[ROW] * 3, "float64"),
            _entry(f"{PARTS}.moments", "start_option", *[ROW] * 3, "int64", "int64", "float64"),
            _entry(f"{PARTS}.moments", "wait", *[ROW] * 3, "float64"),
            _entry(f"{PARTS}.moments", "will_happen", *[ROW] * 2),
            _entry(f"{PARTS}.moments", "end_run", *[ROW] * 2, "float64"),
        ),
        ("optbench.sim.moments",),
    ),
    "end_of_run": Kernel(
        "the end of a simulation",
        (_entry(f"{PARTS}.moments", "end_run", *[ROW] * 2, "float64"),),
        ("optbench.simulation",),
    ),
    "sites": Kernel(
        "policies for sites",
        (_entry(f"{PARTS}.sites.sites", "run_sites", *[ROW] * 3, "float64"),),
        ("optbench.sim.sites.sites",),
    ),
    "site_decisions": Kernel(
        "decisions for sites in Python",
        (
            _entry(f"{PARTS}.sites.sites", "next_choice", *[ROW] * 3, "float64", "boolean"),
            _entry(f"{PARTS}.sites.sites", "send_to", *[ROW] * 3, *["int64"] * 4),
            _entry(f"{PARTS}.sites.sites", "hold_until", *[ROW] * 2, "int64", "float64"),
        ),
        (),
    ),
    "routes": Kernel(
        "routing to sites",
        (_entry(f"{PARTS}.sites.routes", "run_routes", *[ROW] * 4, "float64", "boolean"),),
        ("optbench.sim.sites.routes",),
    ),
    "plans": Kernel(
        "plans of sites",
        (_entry(f"{PARTS}.sites.plans", "run_plans", *[ROW] * 4, "float64"),),
        ("optbench.sim.sites.plans",),
    ),
    "pilot": Kernel(
        "networks that route",
        (
            _entry(
                f"{PARTS}.sites.pilot", "run_pilot", *[ROW] * 5, SINGLES, FLOATS, FLOATS, "float64"
            ),
        ),
        ("optbench.learn.sites.pilot",),
    ),
    "pilot_training": Kernel(
        "training of networks that route",
        (
            _entry(
                f"{PARTS}.sites.pilot",
                "roll",
                *[ROWS] * 4,
                ROW,
                SINGLES,
                "float64[:,::1]",
                FLOATS,
                ROW,
                "float32[:,:,::1]",
                "boolean[:,:,::1]",
                ROWS,
                "float64[:,:,::1]",
            ),
        ),
        ("optbench.learn.sites.parallel_weeks",),
    ),
    "environments": Kernel(
        "environments",
        (
            _entry(
                f"{PARTS}.fleet",
                "open_all",
                *[ROWS] * 4,
                ROW,
                "float32[:,::1]",
                "boolean[:,::1]",
                "float64[:,::1]",
            ),
            _entry(
                f"{PARTS}.fleet",
                "step_all",
                *[ROWS] * 4,
                ROW,
                ROW,
                "float32[:,::1]",
                "boolean[:,::1]",
                "float64[:,::1]",
            ),
        ),
        ("optbench.views.env.batch",),
    ),
    "sampling": Kernel(
        "sampling of rules",
        (
            _entry(f"{PARTS}.sampling", "samples", *[ROW] * 7, "int64"),
            _entry(f"{PARTS}.dispatch", "run", *[ROW] * 3, "float64"),
        ),
        ("optbench.sim.sampling",),
    ),
    "lp_search": Kernel(
        "lp_guided's search",
        (
            _entry(LP_SEARCH, "anneal", *[ROW] * 4, "int64"),
            _entry(LP_SEARCH, "consider", *[ROW] * 4),
            _entry(LP_SEARCH, "settle_all", *[ROW] * 2),
            _entry(LP_SEARCH, "value_now", *[ROW] * 4),
        ),
        ("optbench.plugins.solvers.lp_guided",),
    ),
    "going_on": Kernel(
        "list rules that take over from others",
        (
            _entry(f"{PARTS}.dispatch", "run", *[ROW] * 3, "float64"),
            _entry(f"{PARTS}.dispatch", "resume", *[ROW] * 3, "float64"),
        ),
        ("optbench.plugins.solvers._lp_online",),
    ),
    "shop_search": Kernel(
        "tabu search for shops",
        (_entry(f"{PRIMAL}.tabu", "search", *SHOP_SEARCH),),
        ("optbench.sim.primal",),
    ),
    "project_search": Kernel(
        "genetic search for projects",
        (_entry(f"{PRIMAL}.genetic", "evolve", GRAPH, DEMANDS, *PROJECT_SEARCH),),
        ("optbench.sim.primal",),
    ),
    "partitioning": Kernel(
        "graph partitioning",
        (
            _entry(f"{PARTITION}.independent_sets", "clusters", *[ROW] * 6, *["int64"] * 2),
            _entry(f"{PARTITION}.level_graph", "contracted", *[ROW] * 5, "int64"),
            _entry(f"{PARTITION}.level_graph", "cut_weight", *[ROW] * 4),
            _entry(f"{PARTITION}.level_graph", "rows_of_edges", *[ROW] * 2, "int64"),
            _entry(f"{PARTITION}.level_graph", "induced_rows", *[ROW] * 5),
            _entry(f"{PARTITION}.components", "component_numbers", *[ROW] * 2),
            _entry(f"{PARTITION}.local_search", "refine", *[ROW] * 6, *["int64"] * 4),
            _entry(
                f"{PARTITION}.device_moves",
                "settle_round",
                *[ROW] * 4,
                *["float64[:,::1]"] * 2,
                "float64[:,:,::1]",
                "float64[:,::1]",
                "float64[::1]",
                *[ROW] * 2,
            ),
            _entry(
                f"{PARTITION}.spectral_start",
                "capped_means",
                "float64[:,::1]",
                *[ROW] * 2,
                *["int64"] * 2,
            ),
        ),
        (PARTITION,),
    ),
    "streaming": Kernel(
        "streaming of graphs",
        (_entry("optbench.plugins.solvers.ldg", "streamed", *[ROW] * 3, *["int64"] * 2),),
        ("optbench.plugins.solvers.ldg",),
    ),
    "deductions": Kernel(
        "destructive bounds",
        (
            _entry(
                PROPAGATE, "propagate", ROW, ROW, FLAGS, FLAGS, "boolean", ROW, *DEDUCTION_TABLES
            ),
            _entry(PROPAGATE, "shave", ROW, ROW, FLAGS, "int64", "boolean", ROW, *DEDUCTION_TABLES),
        ),
        ("optbench.bounds.combinatorial.destructive",),
    ),
    "cut_bounds": Kernel(
        "bounds on the cut",
        (
            _entry(f"{CUT}.cut_problem", "_components", ROW, ROW),
            _entry(f"{CUT}.tree_kernels", "shortest_paths", *[ROW] * 4, "int64", "int64"),
            _entry(f"{CUT}.tree_kernels", "best_size", ROW, ROW, "int64"),
            _entry(f"{CUT}.tree_kernels", "tree_loads", *[ROW] * 3, "int64", "int64"),
            _entry(f"{CUT}.tree_kernels", "grown_lengths", ROW, "int64", ROW),
            _entry(f"{CUT}.tree_kernels", "add_tree", *[ROW] * 3),
            _entry(SDP, "inner_products", ROW, ROW, VECTORS, SINGLES),
            _entry(SDP, "row_excess", ROWS, SIGNS, FLOATS, SINGLES, FLOATS),
            _entry(SDP, "pair_weights", ROWS, SIGNS, FLOATS, ROW, SINGLES),
            _entry(SDP, "sweep", *[ROW] * 3, SINGLES, "float64", FLOATS, VECTORS, FLOATS),
            _entry(SDP, "violated_triangles", ROW, ROW, VECTORS, "boolean", "int64", "float64"),
            _entry(SDP, "violated_pairs", VECTORS, "float64"),
            _entry(SDP, "whole_weights", "int64", ROW, ROW, "int64", ROW, ROWS, ROW),
            _entry(f"{CUT}.first_partition", "tabu_search", ROWS, ROW, "int64", "int64", ROW),
        ),
        (f"{CUT}.cut_bound",),
    ),
}


# What bounds may run, whatever the instance; what policies that are written in Python run.
BOUNDING = frozenset({"deductions"})
POLICIES = frozenset({"rules", "arrivals", "decisions"})


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order of the table, each once."""
    wanted = set(names)
    for name in wanted - set(KERNELS):
        raise UnknownNameError("kernel", name, KERNELS)
    return [name for name in KERNELS if name in wanted]


def kernels_used_by(modules: Iterable[str]) -> set[str]:
    """Return the names of the kernels that any of these modules calls."""
    known = set(modules)
    return {name for name, kernel in KERNELS.items() if not known.isdisjoint(kernel.users)}


def are_compiled(names: Iterable[str]) -> bool:
    """Whether all of these kernels are compiled."""
    return all(KERNELS[name].is_compiled() for name in _in_order(names))


def prepare(names: Iterable[str]) -> float:
    """Load kernels and compile what is missing, with an announcement; return the seconds of
    compiling.
    """
    ordered = _in_order(names)
    before = compiled_s()
    missing = [name for name in ordered if not KERNELS[name].is_compiled()]
    if missing:
        announce(f"compiling {_listed([KERNELS[name].what for name in missing])}, once per machine")
        began = time.perf_counter()
        with _LOCK, metered(None), _one_at_a_time(), announcing(no_announcement):
            for name in share_of_this_process(missing):
                KERNELS[name].compile_missing()
            _load(missing)
        announce(f"compiled in {time.perf_counter() - began:.1f} s")
    _load(ordered)
    return compiled_s() - before


def _load(names: Iterable[str]) -> None:
    for name in names:
        for entry in KERNELS[name].entries:
            entry.load()


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait for another process that compiles the same source, and then find its code in the cache.

    Correctness does not depend on this lock, because files of the cache are written atomically.
    Where there are no locks, or the other process takes too long (it may be stopped), both compile.
    """
    from optbench.compiling.compiled import stamp_of
    from optbench.compiling.kernel_cache import kernels_folder, remove_unused

    with contextlib.ExitStack() as stack:
        # No such module, an unwritable folder, or a file system without locks.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            folder = kernels_folder()
            folder.mkdir(parents=True, exist_ok=True)
            remove_unused()
            source = stamp_of(Path(__file__).parents[1] / "sim" / "kernel")
            lock = stack.enter_context((folder / f"{source}.lock").open("w"))
            give_up = time.monotonic() + MOST_WAITING_S
            while time.monotonic() < give_up:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(LOOK_S)
        yield
