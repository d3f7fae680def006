"""Records of arrivals: what is read, dropped, assumed and refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ParameterError
from optbench.formats.imported import Import, ImportFindings
from optbench.formats.text_tables import read_table
from optbench.formats.traces import read_gavel, read_pods
from optbench.model.validate import validate
from optbench.plugins.discovery import load_problem

OWN = """job,ingress,type,arrival_s,size_units,site
a,gw-us-west,training,10.5,4000,us-east
b,gw-us-east,inference,20,300,
c,gw-eu-west,training,86400,500,eu-west
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,\
deletion_time,scheduled_time
p0,1,1,1,1000,,LS,Running,0,1100,100
p1,1,1,0,0,,LS,Running,5,1000,5
p2,1,1,1,250,,BE,Failed,10,410,10
p3,1,1,2,1000,,BE,Pending,20,900,
p4,1,1,2,1000,,BE,Succeeded,30,30,30
p5,1,1,2,1000,,BE,Succeeded,40,540,140
"""
# Seconds per unit on one GPU of us-west at its top clock: 0.0045 + 0.032.
US_WEST_S = 0.0365


def imported(text: str | bytes, tmp_path: Path, options: str = "", seed: int = 0) -> Import:
    path = tmp_path / "record"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = load_problem(f"geo_dc:arrivals={path}{options}").imported(seed)
    assert found is not None
    return found


def said(found: Import, section: str) -> dict[str, int]:
    return {finding.what: finding.count for finding in getattr(found.report, section)}


def test_a_record_of_ones_own_is_read_as_it_stands(tmp_path: Path) -> None:
    found = imported(OWN, tmp_path, ",days=0.5")
    instance, stream = found.instance, found.instance.stream
    assert stream is not None and instance.num_tasks == 2 and instance.tasks.names == ("a", "b")
    assert instance.tasks.release.tolist() == [10_500_000_000, 20_000_000_000]
    assert instance.tasks.units.tolist() == [4000.0, 300.0]
    assert [stream.ingress_names[g] for g in stream.ingress] == ["gw-us-west", "gw-us-east"]
    assert stream.sent_to.tolist() == [1, -1] and instance.opens == 10_500_000_000
    assert found.report.format == "CSV of arrivals"
    assert found.report.read["rows"] == 3 and found.report.read["inference jobs"] == 1
    assert said(found, "dropped") == {"arrives after the horizon (43,200 s of the record)": 1}
    assert (
        instance.hash
        == load_problem(f"geo_dc:arrivals={tmp_path / 'record'},days=0.5").instance(7).hash
    )


def test_a_packed_record_is_the_same(tmp_path: Path) -> None:
    assert (
        imported(gzip.compress(OWN.encode(), mtime=0), tmp_path).instance.hash
        == imported(OWN, tmp_path).instance.hash
    )


def test_durations_become_units_of_the_reference_site(tmp_path: Path) -> None:
    """4 GPUs for 3,600 s are 14,400 GPU-seconds; those without length, GPUs or an end are dropped,
    and say so.
    """
    text = "ingress,arrival_s,duration_s,gpus,team\n" + "".join(
        f"gw-us-west,{t},{duration},{gpus},x\n"
        for t, duration, gpus in ((0, 3600, 4), (10, 0, 4), (20, "", 4), (30, 60, 0))
    )
    found = imported(text, tmp_path)
    assert found.instance.tasks.units.tolist() == pytest.approx([14_400 / US_WEST_S])
    assert said(found, "dropped") == {
        "duration_s is empty": 1,
        "duration_s is 0: nothing to do": 1,
        "gpus is 0": 1,
    }
    assert found.report.dropped[0].examples == ("line 4",)
    assumed = said(found, "assumed")
    assert assumed["no column 'type': training"] == assumed["a column that is not used"] == 1
    east = imported(text, tmp_path, ",reference=us-east")
    assert east.instance.tasks.units.tolist() == pytest.approx([14_400 / 0.043])
    assert any(
        "one of us-east (A100-PCIe) at its top clock" in what for what in said(east, "assumed")
    )


def test_a_window_of_a_record_is_taken_at_another_pace(tmp_path: Path) -> None:
    found = imported(OWN, tmp_path, ",begin_days=0.0002,pace=2")
    instance = found.instance
    # A week is 6e14 ns, more than 2^48: ticks of 1e-8 s.
    assert instance.tick_s == 1e-8
    assert (instance.tasks.release * instance.tick_s).tolist() == pytest.approx(
        [(20 - 17.28) / 2, (86_400 - 17.28) / 2]
    )
    assert said(found, "dropped") == {"arrives before begin_days (17 s)": 1}
    assert "arrivals come 2 times as fast as on record; their work is that on record" in said(
        found, "assumed"
    )
    with pytest.raises(
        FileFormatError,
        match=r"no job arrives in the 604,800 s from 864,000 s on; the record goes from 10 s to",
    ):
        imported(OWN, tmp_path, ",begin_days=10")
    assert said(imported(OWN, tmp_path, ",jobs=1"), "dropped") == {"beyond the first 1 jobs": 2}


def test_work_sent_to_a_site_that_is_left_out_may_go_anywhere(tmp_path: Path) -> None:
    found = imported(OWN, tmp_path, ",only=[us-west,eu-west]")
    assert found.instance.stream is not None and found.instance.stream.sent_to.tolist() == [
        -1,
        -1,
        1,
    ]
    assert said(found, "assumed") == {"its site is left out: it may go anywhere": 1}


def test_names_that_stand_twice_are_numbers(tmp_path: Path) -> None:
    found = imported(OWN.replace("\nb,", "\na,"), tmp_path)
    assert found.instance.tasks.names is None
    assert said(found, "warnings") == {"1 names of jobs stand twice: jobs are numbered instead": 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "arrival_s",
            "arrived",
            (
                r"column 'arrival_s' is missing; the first line must name ingress.*There are: job, "
                r"ingress"
            ),
        ),
        ("ingress", "door", "column 'ingress' is missing"),
        ("size_units", "size", "column 'size_units' is missing"),
        ("type", "site", "line 1: the column 'site' stands twice"),
        (
            "20,300",
            "5,300",
            r"line 3: arrival_s is 5, after 10.5; arrivals must stand in order of time",
        ),
        ("20,300", "x,300", "line 3: arrival_s is 'x'; it must be a number"),
        ("20,300", ",300", "line 3: arrival_s is empty; it must be a number"),
        (
            "10.5,4000",
            "-10.5,4000",
            "line 2: arrival_s is '-10.5'; it must be finite and at least 0",
        ),
        ("20,300", "nan,300", "line 3: arrival_s is 'nan'; it must be finite"),
        ("4000", "-4000", "line 2: size_units is '-4000'; it must be finite and at least 0"),
        ("4000", "1e999", "line 2: size_units is '1e999'; it must be finite"),
        ("gw-us-west", "gw-us-wets", "line 2: ingress is 'gw-us-wets'; did you mean 'gw-us-west'"),
        ("b,gw-us-east", "b,", "line 3: ingress is empty"),
        ("inference", "batch", "line 3: type is 'batch'; known: inference, training"),
        ("us-east\n", "us-eats\n", "line 2: site is 'us-eats'; did you mean 'us-east'"),
        ("300,", "300", "line 3: 5 fields, where there are 6 columns"),
    ],
)
def test_records_are_refused_by_line(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in OWN
    with pytest.raises(FileFormatError, match=message):
        imported(OWN.replace(old, new, 1), tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (OWN.partition("\n")[0].encode(), "no row but the header"),
        (
            b"ingress,arrival_s,size_units\ngw-us-west,1,0\n",
            "no row is left: 1 x size_units is 0: nothing to do",
        ),
        (b"\x1f\x8bnonsense", "damaged gzip data"),
        (gzip.compress(OWN.encode(), mtime=0)[:-9], "damaged gzip data"),
        (gzip.compress(b"a\0b", mtime=0), "a NUL byte at offset 1"),
        (
            gzip.compress(b"ingress,arrival_s,size_units\n" + b"0" * (257 << 20), 1, mtime=0),
            "files up to 256 MB are read",
        ),
        ("ingress,arrival_s,size_units\nÄ,1,2\n".encode("latin-1"), "line 2: byte 0xc4"),
    ],
)
def test_what_is_no_record(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        imported(data, tmp_path)


def test_no_record_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"nothing\.csv: no such file"):
        load_problem(f"geo_dc:arrivals={tmp_path / 'nothing.csv'}").instance()
    path = tmp_path / "record"
    path.write_text(OWN)
    with pytest.raises(ParameterError, match="reference is 'mars'; it must be a site: us-west"):
        load_problem(f"geo_dc:arrivals={path},reference=mars").instance()
    assert load_problem("geo_dc").imported() is None


def test_pods_that_did_not_run_on_a_gpu_are_dropped(tmp_path: Path) -> None:
    """p0: 1,000 s on one GPU; p2: 400 s on a quarter of one; p5: 400 s on two."""
    found = imported(PODS, tmp_path)
    assert found.report.format == "Alibaba GPU 2023 pods" and found.instance.tasks.names == (
        "p0",
        "p2",
        "p5",
    )
    assert found.instance.tasks.units.tolist() == pytest.approx(
        [1000 / US_WEST_S, 100 / US_WEST_S, 800 / US_WEST_S]
    )
    assert said(found, "dropped") == {
        "asks for no GPU": 1,
        "never ran (scheduled_time is empty)": 1,
        "takes no time": 1,
    }
    assumed = said(found, "assumed")
    assert assumed["shares a GPU; its work is that share of its run time"] == 1
    assert (
        assumed["has failed; its work is what it ran"]
        == assumed["is there at the end of the trace: taken to end then"]
        == 1
    )
    assert (
        found.instance.hash != imported(PODS, tmp_path, seed=1).instance.hash
    )  # ingresses are drawn
    jobs = read_pods(read_table(PODS, "pods"), ImportFindings())
    assert jobs.start_s.tolist() == [100, 10, 140] and jobs.end_s.tolist() == [1100, 410, 540]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "deletion_time",
            "deleted",
            "column 'deletion_time' is missing; a list of pods has name, num_gpu",
        ),
        (
            "p2,1,1,1,250,,BE,Failed,10",
            "p2,1,1,1,250,,BE,Failed,1",
            "line 4: creation_time is 1, after 5; arrivals must",
        ),
        ("0,1100,100", "0,soon,100", "line 2: deletion_time is 'soon'; it must be a number"),
    ],
)
def test_lists_of_pods_are_refused_by_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError, match=message):
        imported(PODS.replace(old, new), tmp_path)


def gavel(*jobs: tuple[str, int, int, float]) -> str:
    return "".join(
        f"{kind}\trun\tdir\t-n\t1\t{steps}\t{gpus}\t1\t-1.000000\t{t}\n"
        for kind, steps, gpus, t in jobs
    )


RATES = {
    "v100": {"('A', 1)": {"null": 10.0}, "('A', 2)": {"null": 16.0}, "('B', 1)": {"null": 0.0}}
}


def test_steps_over_throughput_are_run_times() -> None:
    """1,000 steps at 10 a second on one GPU, 1,600 at 16 a second on two; the others have no
    throughput or no steps.
    """
    findings = ImportFindings()
    text = gavel(
        ("A", 1000, 1, 0), ("A", 1600, 2, 5), ("B", 10, 1, 6), ("C", 10, 1, 6), ("A", 0, 1, 9)
    )
    jobs = read_gavel(text, "trace", RATES, findings)
    assert jobs.gpu_s.tolist() == [100.0, 200.0] and jobs.arrival_s.tolist() == [0.0, 5.0]
    assert [str(finding) for finding in findings.report("", {}).dropped] == [
        "1 x no throughput on v100: ('B', 1) has none (line 3)",
        "1 x no throughput on v100: ('C', 1) is not in the table (line 4)",
        "1 x no steps to do (line 5)",
    ]
    with pytest.raises(FileFormatError, match="no type of GPU 'a100'; did you mean 'v100'"):
        read_gavel(text, "trace", RATES, findings, "a100")
    with pytest.raises(FileFormatError, match="line 2: arrival_time is 3, after 4"):
        read_gavel(gavel(("A", 1, 1, 4), ("A", 1, 1, 3)), "trace", RATES, findings)
    with pytest.raises(FileFormatError, match="line 2: 7 fields, where there are 10 columns"):
        read_gavel(gavel(("A", 1, 1, 4)) + "A\trun\t-n\t1\t5\t9\t1\n", "trace", RATES, findings)


@pytest.mark.parametrize(
    ("name", "rows", "jobs", "dropped"),
    [
        ("gavel/max_min_fairness.trace", 96, 96, 0),
        ("gavel/artifact_evaluation.trace", 15, 15, 0),
        # Two of the 18 have a key that is in no table.
        ("gavel/msr_51b7ef_seed3.trace", 18, 16, 2),
        # Of 8,152 pods 7,064 ask for GPUs, of which 6,203 ran.
        ("alibaba-gpu-v2023/openb_pod_list_default.csv", 8152, 6203, 1949),
        ("chsac-af/reference/arrivals.csv.gz", 96_748, 96_748, 0),
    ],
)
def test_public_records(
    name: str, rows: int, jobs: int, dropped: int, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    found = load_problem(f"geo_dc:arrivals={name},days=150").imported(0)
    assert found is not None and validate(found.instance) is found.instance
    assert (found.report.read["rows"], found.report.read["jobs"]) == (rows, jobs)
    assert sum(finding.count for finding in found.report.dropped) == dropped


def test_a_policy_runs_a_trace_to_its_end(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    result = ob.solve(
        "geo_dc:arrivals=gavel/max_min_fairness.trace,drain=yes", "joint_nf", bound=False
    )
    assert result.status == "feasible" and result.metrics["completed"] == 96


@pytest.mark.parametrize("seed", range(40))
def test_damaged_records_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    """Bytes flipped, cut out or doubled: an error that names the file, or a valid instance."""
    rng = np.random.default_rng(seed)
    (tmp_path / "simulation_throughputs.json").write_text(json.dumps(RATES))
    for text in (OWN, PODS, gavel(("A", 1000, 1, 0), ("A", 99, 2, 7))):
        data = bytearray(text.encode())
        for _ in range(int(rng.integers(1, 4))):
            at, kind = int(rng.integers(len(data))), int(rng.integers(4))
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                del data[at : at + int(rng.integers(1, 30))]
            elif kind == 2:
                data[at:at] = data[at : at + 20]
            else:
                data[at:at] = rng.choice(np.frombuffer(b'",\n\t-e9', dtype=np.uint8), 2).tobytes()
        try:
            found = imported(bytes(data), tmp_path)
        except FileFormatError as error:
            assert str(tmp_path / "record") in str(error)
        else:
            assert validate(found.instance) is found.instance
