"""A user's own throughput tables and jobs for problem ``colocation``: read, and refused with
what is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.errors import FileFormatError, ModelError, OptbenchError, ParameterError
from optbench.plugins.problems._colocation_tables import read_tables
from optbench.plugins.problems.colocation import ColocationCluster
from optbench.shapes.colocation.colocation_data import Colocation, JobType
from optbench.shapes.colocation.trace_replay import offered_load

TABLES = """gpu_type,job_type,family,batch_size,gpus,partner,per_s,profile
new,bert,BERT,8,1,,30,A100
new,bert,BERT,8,1,bert,18,A100
new,bert,BERT,8,1,gpt,16,A100
new,gpt,GPT,4,1,,12,
new,gpt,GPT,4,1,bert,7,
new,gpt,GPT,4,1,gpt,0,
new,gpt,GPT,4,2,,20,
L4,bert,BERT,8,1,,9,
L4,bert,BERT,8,1,bert,0,
L4,bert,BERT,8,1,gpt,0,
L4,gpt,GPT,4,1,,3,
L4,gpt,GPT,4,1,bert,0,
L4,gpt,GPT,4,1,gpt,0,
L4,gpt,GPT,4,2,,0,
"""
JOBS = """job_type,arrival_s,gpus,work,stay_s,required_per_s
bert,0,1,90000,,10
gpt,100,1,,7200,5.5
gpt,720,2,5000,,
"""


def own(tmp_path: Path, tables: str = TABLES, jobs: str | None = JOBS, **more: Any) -> Colocation:
    (tmp_path / "own.csv").write_text(tables)
    if jobs is not None:
        (tmp_path / "jobs.csv").write_text(jobs)
        more["trace"] = str(tmp_path / "jobs.csv")
    given = {"gpus": 4, "tables": str(tmp_path / "own.csv")} | more
    data: Colocation = ColocationCluster(**given).data(0)
    return data


def test_tables_are_read_as_they_stand(tmp_path: Path) -> None:
    data = own(tmp_path)
    assert [each.name for each in data.gpu_types] == ["new", "L4"]
    assert data.job_types == (
        JobType("bert", "BERT", 8.0), JobType("gpt", "GPT", 4.0), JobType("gpt", "GPT", 4.0, 2),
    )  # fmt: skip
    assert data.alone_per_s.tolist() == [[30, 12, 20], [9, 3, 0]]
    assert data.beside_per_s[0].tolist() == [[18, 16, 0], [7, 0, 0], [0, 0, 0]]
    assert not data.beside_per_s[1].any()
    # 85 % of the 300 W of an A100-PCIe and of the 72 W of an L4.
    assert [each.full_w for each in data.gpu_types] == pytest.approx([255.0, 61.2])


def test_jobs_are_read_as_they_stand(tmp_path: Path) -> None:
    jobs = own(tmp_path, aligned=False).jobs
    assert jobs.arrival_s.tolist() == [0, 100, 720] and jobs.job_type.tolist() == [0, 1, 2]
    assert jobs.work.tolist() == [90_000, 0, 5_000] and jobs.stay_s.tolist() == [0, 7_200, 0]
    assert jobs.required_per_s[:2].tolist() == [10, 5.5]
    # The gang runs on one type: its requirement is 0.3 to 0.8 of 20 per second.
    assert 6 <= jobs.required_per_s[2] <= 16


def test_times_of_a_file_are_fitted_only_to_a_given_load(tmp_path: Path) -> None:
    assert own(tmp_path, load=0.4, aligned=False, jobs=None).jobs.count == 135
    assert offered_load(own(tmp_path, load=0.4, aligned=False)) == pytest.approx(0.4)


def test_drawn_jobs_use_the_users_tables(tmp_path: Path) -> None:
    data = own(tmp_path, jobs=None, gangs=0.5, gpus=8)
    # One of the two families is held out; gangs need half of four GPUs.
    assert data.known.tolist() in ([[True, False, False]] * 2, [[False, True, True]] * 2)
    assert set(data.jobs.job_type.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("new,bert,BERT,8,1,gpt,16,A100\n", "", FileFormatError,
         r"own.csv: the throughput of 'bert' beside 'gpt' on 'new' is missing; write per_s 0"),
        ("L4,gpt,GPT,4,2,,0,\n", "", FileFormatError,
         r"the throughput of 'gpt on 2 GPUs' alone on 'L4' is missing"),
        ("L4,bert,BERT,8,1,,9,", "L4,bert,BERT,8,1,,-9,", FileFormatError,
         r"own.csv, line 9: per_s is '-9'; it must be finite and at least 0"),
        ("bert,7,", "bert,nan,", FileFormatError, r"line 6: per_s is 'nan'"),
        ("bert,7,", "bert,fast,", FileFormatError, r"line 6: per_s is 'fast'; it must be a number"),
        ("new,gpt,GPT,4,1,bert,7,", "new,gpt,GPT,4,1,bert,0,", FileFormatError,
         r"the throughput of 'bert' beside 'gpt' on 'new' is above 0, and that of its partner is"),
        ("new,gpt,GPT,4,2,,20,", "new,gpt,GPT,4,2,,0,", FileFormatError,
         r"job type 'gpt on 2 GPUs' runs on no GPU type alone"),
        ("new,gpt,GPT,4,2,,20,", "new,gpt,GPT,4,2,bert,20,", FileFormatError,
         r"line 8: job type 'gpt' has 2 GPUs; gangs run alone"),
        ("new,bert,BERT,8,1,gpt,16,A100", "new,bert,BERT,8,1,gtp,16,A100", FileFormatError,
         r"line 4: partner 'gtp' has no row of its own; did you mean 'gpt'\?"),
        ("new,gpt,GPT,4,1,,12,", "new,gpt,GPT,4,1,,12,\nnew,gpt,GPT,4,1,,13,", FileFormatError,
         r"line 6: the throughput of 'gpt' alone on 'new' stands twice"),
        ("L4,gpt,GPT,4,1,,3,", "L4,gpt,GPT,8,1,,3,", FileFormatError,
         r"line 12: job type 'gpt' has family 'GPT' and batch_size 8; a row before says 'GPT' and"),
        ("L4,gpt,GPT,4,1,,3,", "L4,gpt,GPT,0,1,,3,", FileFormatError, r"batch_size is 0"),
        ("L4,gpt,GPT,4,1,,3,", "L4,gpt,,4,1,,3,", FileFormatError, r"line 12: family is empty"),
        ("L4,gpt,GPT,4,1,,3,", "L4,gpt,GPT,4,0,,3,", FileFormatError, r"line 12: gpus is 0"),
        ("16,A100", "16,L40S", FileFormatError,
         r"line 4: profile of 'new' is 'L40S'; a row before says 'A100'"),
        ("batch_size,gpus", "batches,gpus", FileFormatError, r"column 'batch_size' is missing"),
        (",profile\n", ",profil\n", FileFormatError, r"no column 'profil'; did you mean 'profile'"),
        ("A100", "A100X", OptbenchError, r"unknown profile 'A100X'"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(
    tmp_path: Path, old: str, new: str, error: type[Exception], words: str
) -> None:
    assert old in TABLES
    with pytest.raises(error, match=words):
        own(tmp_path, TABLES.replace(old, new))


def test_tables_of_gangs_alone_are_drawn_from_where_they_fit(tmp_path: Path) -> None:
    gangs = "gpu_type,job_type,family,batch_size,gpus,partner,per_s\nT4,a,A,1,4,,5\nT4,b,B,1,2,,5\n"
    data = own(tmp_path, gangs, jobs=None, gpus=2)
    assert {data.job_types[t].name for t in data.jobs.job_type} == {"b"}
    with pytest.raises(ParameterError, match=r"gpus is 1; the smallest job of the tables needs 2"):
        own(tmp_path, gangs, jobs=None, gpus=1)


def test_more_job_types_than_memory_holds_are_refused(tmp_path: Path) -> None:
    # 5,000 job types on one GPU type: 5,000 rows alone and 25 million pairs.
    rows = [f"T4,net{k},net,1,1,,5,\n" for k in range(5_000)]
    words = r"5,000 job types on 1 GPU types need 25,005,000 rows; there are 5,000"
    with pytest.raises(FileFormatError, match=words):
        own(tmp_path, TABLES.partition("\n")[0] + "\n" + "".join(rows))


def test_a_gpu_type_without_a_power_profile_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"GPU type 'new' has no power profile; name one in"):
        own(tmp_path, TABLES.replace("A100", ""))


def test_a_profile_may_be_a_file(tmp_path: Path) -> None:
    from optbench.power import profiles

    shipped = Path(profiles.__file__).parent / "data" / "L40S.json"
    data = own(tmp_path, TABLES.replace("A100", str(shipped)))
    # 85 % of 350 W.
    assert data.gpu_types[0].full_w == pytest.approx(297.5)


def test_the_names_of_shipped_profiles_need_no_column(tmp_path: Path) -> None:
    text = "\n".join(line.rpartition(",")[0] for line in TABLES.replace("new", "k80").splitlines())
    (tmp_path / "own.csv").write_text(text)
    assert read_tables(str(tmp_path / "own.csv")).profiles == {}
    assert own(tmp_path, text).gpu_types[0].idle_w == 27


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("bert,0,1,90000,,10", "bert,0,1,90000,,31", ModelError,
         r"job 0 \(bert\) requires 31 per second; it alone cannot be served: its best GPUs give"),
        ("bert,0,1,90000,,10", "bret,0,1,90000,,10", FileFormatError,
         r"jobs.csv, line 2: job_type 'bret' is in no table; did you mean 'bert'\?"),
        ("bert,0,1,90000,,10", "bert,0,4,90000,,10", FileFormatError,
         r"line 2: job_type 'bert' with 4 GPUs is in no table; it is there with 1"),
        ("gpt,100,1,,7200,5.5", "gpt,100,1,5,7200,5.5", FileFormatError,
         r"line 3: exactly one of work and stay_s must be given"),
        ("gpt,100,1,,7200,5.5", "gpt,100,1,,,5.5", FileFormatError, r"line 3: exactly one of"),
        ("gpt,100,1,,7200,5.5", "gpt,100,1,,0,5.5", FileFormatError, r"line 3: stay_s is 0"),
        ("gpt,100,1,,7200,5.5", "gpt,900,1,,7200,5.5", FileFormatError,
         r"line 4: arrival_s is 720, after 900"),
        ("gpt,100,1,,7200,5.5", "gpt,100,1,,1e300,5.5", FileFormatError,
         r"line 3: stay_s is 1e\+300; it must be 0, or from 1e-09 to 1e\+12"),
        ("gpt,720,2,5000,,", "gpt,720,1e30,5000,,", FileFormatError, r"line 4: gpus is 1e\+30"),
        ("arrival_s", "arrives", FileFormatError, r"column 'arrival_s' is missing; a list of jobs"),
        ("required_per_s", "rate", FileFormatError, r"there is no column 'rate'"),
    ],
)  # fmt: skip
def test_wrong_jobs_are_refused(
    tmp_path: Path, old: str, new: str, error: type[Exception], words: str
) -> None:
    assert old in JOBS
    with pytest.raises(error, match=words):
        own(tmp_path, jobs=JOBS.replace(old, new))


def test_one_time_of_arrival_cannot_be_fitted(tmp_path: Path) -> None:
    jobs = JOBS.replace(",100,", ",0,").replace(",720,", ",0,")
    assert own(tmp_path, jobs=jobs).jobs.count == 3
    with pytest.raises(ParameterError, match=r"load cannot be fitted where all jobs arrive"):
        own(tmp_path, jobs=jobs, load=0.9)
