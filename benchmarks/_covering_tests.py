"""Which tests cover a file of the verifier and of the bounds, the quickest to notice a change
first; for ``mutants.py``.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MODEL_TESTS = (
    "tests/model/test_verify_each_constraint.py",
    "tests/model/test_verify_bad_form.py",
    "tests/model/test_metrics.py",
    "tests/model/test_metamorphic.py",
    "tests/model/test_loopholes.py",
    "tests/model/test_streams.py",
    "tests/test_second_verifier.py",
)
# Files whose first test file has another name than theirs.
MODEL_FILES = {
    "verify": "verify_each_constraint",
    "checks": "verify_each_constraint",
    "task_progress": "progress",
}
MODEL_FILES |= {
    name: name
    for name in (
        "metrics",
        "caps",
        "stream_metrics",
        "streams",
        "timegrid",
        "repair",
        "measures",
        "content_hash",
        "windows",
    )
}
STREAM_TESTS = (
    "stream_parts",
    "stream_corners",
    "stream",
    "stream_windows",
    "stream_deadlines",
    "preemptive",
)
# Tests that notice more, or the same sooner, than those of the file's own name.
FIRST = {
    "fluid": "fluid_table",
    "fluid_tariffs": "fluid_table",
    "fluid_bound": "fluid_solves",
    "anatomy": "anatomy_parts",
    "destructive": "destructive_parts",
    "bank": "bank_entries_kept",
}
# Of each file of the bounds: the tests in tests/bounds that reach it, after its own.
REACHED_BY: dict[str, tuple[str, ...]] = {
    "anatomy": ("explain",),
    "auto": ("combinatorial", "fluid", "bank"),
    "bank": ("bank_entries_kept",),
    "bank_entries": ("bank", "bank_entries_kept"),
    "certificates": ("proving", "bank"),
    "combinatorial": ("destructive", "infeasible", "bank"),
    "destructive": ("bank", "combinatorial"),
    "exact_check": ("anatomy", "bank", "fluid"),
    "explain": ("anatomy", "marginal", "merging"),
    "fluid": ("exact_check", "anatomy", "marginal", "bank"),
    "fluid_bound": ("fluid", "bank", "pricing", "explain"),
    "fluid_point": ("fluid", "anatomy"),
    "fluid_tariffs": ("fluid", "anatomy"),
    "fluid_units": ("fluid",),
    "grouping": ("fluid_table", "fluid", "pricing"),
    "infeasible": ("proving", "bank"),
    "linear_program": ("pricing", "exact_check", "stream", "marginal", "merging"),
    "makespan": ("combinatorial", "destructive"),
    "marginal": ("explain",),
    "merging": ("combinatorial", "explain"),
    "metric_floors": ("combinatorial", "tariff_floor", "proving"),
    "pricing": ("merging", "explain"),
    "propagate": (),
    "resource_deductions": ("propagate",),
    "proving": ("bank",),
    "relaxation": ("combinatorial", "destructive"),
    "seals": ("bank", "proving"),
    "stream": STREAM_TESTS,
    "stream_duals": STREAM_TESTS,
    "stream_per_unit": STREAM_TESTS,
    "stream_program": STREAM_TESTS,
    "stream_rates": STREAM_TESTS,
    "stream_slots": STREAM_TESTS,
    "stream_traffic": STREAM_TESTS,
    "stream_waiting": STREAM_TESTS,
    "tariff_floor": ("combinatorial",),
}


# Files of the bounds whose own tests have another name than theirs.
OWN_TESTS = {
    "bound_bank": "bank",
    "combinatorial_bound": "combinatorial",
    "fluid_program": "fluid",
    "stream_bound": "stream",
}


def _tests_of_bound(stem: str) -> tuple[str, ...]:
    name = OWN_TESTS.get(stem, stem)
    tests = dict.fromkeys((FIRST.get(name, name), name, *REACHED_BY[name]))
    return tuple(f"tests/bounds/test_{test}.py" for test in tests)


COVERED: dict[str, tuple[str, ...]] = {
    **{
        f"optbench/model/{name}.py": (f"tests/model/test_{test}.py", *MODEL_TESTS)
        for name, test in MODEL_FILES.items()
    },
    **{
        path.relative_to(ROOT).as_posix(): _tests_of_bound(path.stem)
        for path in sorted((ROOT / "optbench" / "bounds").rglob("*.py"))
        if path.stem != "__init__"
    },
}
