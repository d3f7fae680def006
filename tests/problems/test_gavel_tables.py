"""Gavel's shipped tables and traces: what they hold, and that they are those of the source."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from optbench.plugins.problems._colocation_traces import GAVEL_TRACES, gavel_trace
from optbench.plugins.problems._gavel import GPU_NAMES, gavel_job_type, gavel_tables

PROBLEMS = Path(__file__).parents[2] / "problems"
TABLES = gavel_tables()
SINGLE = np.array([each.gpus == 1 for each in TABLES.job_types])
PAIRS = TABLES.beside_per_s[:, SINGLE][:, :, SINGLE]


def test_there_are_83_job_types_of_6_families() -> None:
    # 26 at one GPU, and 19 (all but A3C, CycleGAN and five of Recommendation) at 2, 4 and 8 each.
    assert Counter(each.gpus for each in TABLES.job_types) == {1: 26, 2: 19, 4: 19, 8: 19}
    single = Counter(each.family for each in TABLES.job_types if each.gpus == 1)
    assert single == {
        "ResNet": 9, "Transformer": 5, "LM": 5, "Recommendation": 5, "A3C": 1, "CycleGAN": 1,
    }  # fmt: skip
    models = {each.name.split(" (")[0] for each in TABLES.job_types}
    assert len(models) == 7 and {"ResNet-18", "ResNet-50"} < models


def test_pairs_at_one_gpu_that_do_not_fit() -> None:
    # The counts of the issue: 40 on V100, 20 on P100, 87 on K80, of 676 ordered pairs each.
    assert PAIRS.shape == (3, 26, 26)
    assert [int((each == 0).sum()) for each in PAIRS] == [40, 20, 87]
    assert ((PAIRS > 0) == (np.swapaxes(PAIRS, 1, 2) > 0)).all()


def test_13_to_25_percent_of_the_pairs_are_worse_than_time_slicing() -> None:
    # Two jobs that take turns do 1 together, in parts of what each does alone.
    for g, least, most in ((0, 0.21, 0.22), (1, 0.12, 0.13), (2, 0.25, 0.26)):
        share = PAIRS[g] / TABLES.alone_per_s[g, SINGLE][:, None]
        together = (share + share.T)[PAIRS[g] > 0]
        assert least < (together < 1).mean() < most


def test_gangs_run_alone_and_three_not_on_k80() -> None:
    beside = TABLES.beside_per_s
    assert (beside[:, ~SINGLE] == 0).all() and (beside[:, :, ~SINGLE] == 0).all()
    nowhere = [(GPU_NAMES[g], TABLES.job_types[t]) for g, t in np.argwhere(TABLES.alone_per_s == 0)]
    assert nowhere == [
        ("k80", gavel_job_type("ResNet-50 (batch size 128)", gpus)) for gpus in (2, 4, 8)
    ]


@pytest.mark.parametrize(
    ("name", "family", "batch"),
    [
        ("ResNet-18 (batch size 64)", "ResNet", 64.0),
        ("A3C", "A3C", 4.0),
        ("CycleGAN", "CycleGAN", 1.0),
    ],
)
def test_features_are_those_of_the_name(name: str, family: str, batch: float) -> None:
    made = gavel_job_type(name, 2)
    assert (made.name, made.family, made.batch_size, made.gpus) == (name, family, batch, 2)


def test_the_arrays_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        TABLES.alone_per_s[0, 0] = 1.0


def test_the_shipped_tables_are_those_of_the_source(data_dir: Path) -> None:
    source = json.loads((data_dir / "gavel" / "simulation_throughputs.json").read_text())
    keys = [f"('{each.name}', {each.gpus})" for each in TABLES.job_types]
    for g, gpu in enumerate(GPU_NAMES):
        assert set(source[gpu]) == set(keys)
        for t, key in enumerate(keys):
            assert source[gpu][key]["null"] == TABLES.alone_per_s[g, t]
            for s, partner in enumerate(keys):
                if partner in source[gpu][key]:
                    own = [TABLES.beside_per_s[g, t, s], TABLES.beside_per_s[g, s, t]]
                    assert source[gpu][key][partner] == own


def test_the_shipped_traces_are_those_of_the_source(data_dir: Path) -> None:
    shipped = json.loads((PROBLEMS / "_gavel_traces.json").read_text())["traces"]
    files = dict(zip(GAVEL_TRACES, (*GAVEL_TRACES[:2], "msr_51b7ef_seed3"), strict=True))
    for name, file in files.items():
        lines = (data_dir / "gavel" / f"{file}.trace").read_text().splitlines()
        rows = [line.split("\t") for line in lines]
        # Ten columns: type, ..., steps, GPUs, priority, SLO, arrival; or seven: the last three are
        # steps, arrival, GPUs.
        parts = [
            (r[0], r[6], r[5], r[9]) if len(r) == 10 else (r[0], r[6], r[4], r[5]) for r in rows
        ]
        assert shipped[name] == [[t, int(n), int(s), float(a)] for t, n, s, a in parts]


def test_both_files_name_their_source_and_licence() -> None:
    for name in ("_gavel_tables.json", "_gavel_traces.json"):
        read = json.loads((PROBLEMS / name).read_text())
        assert "stanford-futuredata/gavel, commit c4fa400" in read["origin"]
        assert "MIT License" in read["licence"] and "Stanford Future Data" in read["licence"]


def test_two_jobs_of_msr_have_no_job_type() -> None:
    # Recommendation has no rows with several GPUs.
    assert gavel_trace("msr", TABLES.job_types, None).count == 16
    assert gavel_trace("max_min_fairness", TABLES.job_types, None).count == 96
    assert gavel_trace("artifact_evaluation", TABLES.job_types, 9).count == 9
