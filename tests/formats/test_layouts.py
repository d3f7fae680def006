"""Each layout read from a text written by hand, and what a slip in it is called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError, UnknownNameError, UnsupportedError
from optbench.formats.classical import Shop, shop_instance
from optbench.formats.format_registry import convert, detect, load, parse
from optbench.model.builder import Model
from optbench.model.instance import Instance
from tests.sample_files.inputs import cluster, originals, project, shop, written

TAILLARD = """Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound
 2 3 2021925980 398197754 20 15
Times
 5 1 4
 2 2 3
Machines
 2 1 3
 3 2 1
"""
STANDARD = "# the same shop\n2 3\n1 5 0 1 2 4\n\n2 2 1 2 0 3   # second job\n"
FLEXIBLE = "2 3 1.5\n2  1 3 4   2 1 5 2 6\n1  1 2 7\n"
PATTERSON = "4 2\n3 1\n0 0 0 2 2 3\n5 2 1 1\n4\n2 1 0 1 4\n0 0 0 0\n"


def modes_of(instance: Instance) -> list[list[tuple[int, int]]]:
    """(primary pool, duration) alternatives per task."""
    pairs = instance.pairs
    rows = list(
        zip(instance.modes.primary[pairs.mode].tolist(), pairs.duration.tolist(), strict=True)
    )
    return [rows[pairs.ptr[i] : pairs.ptr[i + 1]] for i in range(instance.num_tasks)]


def test_taillard_and_standard_are_the_same_shop() -> None:
    a, b = parse(TAILLARD, "a"), parse(STANDARD, "b")
    assert (detect(TAILLARD), detect(STANDARD)) == ("taillard", "jobshop")
    assert modes_of(a) == [[(1, 5)], [(0, 1)], [(2, 4)], [(2, 2)], [(1, 2)], [(0, 3)]]
    assert a.hash == b.hash
    assert a.pools.names == ("m0", "m1", "m2")
    assert list(zip(a.edges.source.tolist(), a.edges.target.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (3, 4),
        (4, 5),
    ]


def test_flexible() -> None:
    instance = parse(FLEXIBLE, "f")
    assert detect(FLEXIBLE) == "fjsp"
    assert modes_of(instance) == [[(2, 4)], [(0, 5), (1, 6)], [(1, 7)]]
    assert instance.tasks.names == ("j0.0", "j0.1", "j1.0")


def test_operations_with_the_same_modes_share_a_kind() -> None:
    instance = parse("2 3\n2 1 1 4 1 2 4\n1 1 2 4\n", "f")
    assert instance.tasks.kind.tolist() == [0, 1, 1]


def test_patterson() -> None:
    instance = parse(PATTERSON, "p")
    assert detect(PATTERSON) == "rcp"
    assert instance.pools.count.tolist() == [3, 1]
    assert instance.pairs.duration.tolist() == [0, 5, 2, 0]
    modes = instance.modes
    needs = [
        dict(zip(modes.req_pool[a:b].tolist(), modes.req_count[a:b].tolist(), strict=True))
        for a, b in zip(
            modes.req_ptr[instance.pairs.mode], modes.req_ptr[instance.pairs.mode + 1], strict=True
        )
    ]
    assert needs == [{}, {0: 2, 1: 1}, {0: 1}, {}], "dummies need no pool"
    assert instance.edges.source.tolist() == [0, 0, 1, 2]
    assert instance.edges.target.tolist() == [1, 2, 3, 3]


def test_psplib() -> None:
    """The heads of the tables begin like their rows must not; ``#`` is no comment here, the horizon
    is not used.
    """
    text = """****
file with basedata            : hand.bas
jobs (incl. supersource/sink ):  4
horizon                       :  9
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0
  - doubly constrained        :  0   D
****
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      2      0        9        1        7
****
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          0
****
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     5       2    1
  3      1     2       1    0
  4      1     0       0    0
****
RESOURCEAVAILABILITIES:
  R 1  R 2
    3    1
****
"""
    assert detect(text) == "psplib"
    assert parse(text, "p").hash == parse(PATTERSON, "p").hash


def test_psplib_as_another_reader_sees_it(tmp_path: Path) -> None:
    psplib = pytest.importorskip(
        "psplib", reason="the reader to compare with comes with the bench extra"
    )
    path = tmp_path / "p.sm"
    path.write_text(originals()["psplib"])
    other, ours = psplib.parse(path, instance_format="psplib"), load(path)
    assert [resource.capacity for resource in other.resources] == ours.pools.count.tolist()
    assert [
        activity.modes[0].duration for activity in other.activities
    ] == ours.pairs.duration.tolist()
    edges = [(i, j) for i, activity in enumerate(other.activities) for j in activity.successors]
    assert edges == list(zip(ours.edges.source.tolist(), ours.edges.target.tolist(), strict=True))
    needs = np.zeros((ours.num_tasks, ours.num_pools), dtype=int)
    for task, mode in zip(ours.pairs.task, ours.pairs.mode, strict=True):
        rows = slice(ours.modes.req_ptr[mode], ours.modes.req_ptr[mode + 1])
        needs[task, ours.modes.req_pool[rows]] = ours.modes.req_count[rows]
    assert [activity.modes[0].demands for activity in other.activities] == needs.tolist()


SM = originals()["psplib"]


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("jobshop", "2 2\n0 1 1 2\n0 1 0 2\n", "line 3: machine 0 twice in one job"),
        ("jobshop", "2 2\n0 1 1 2\n1 1 2 2\n", "line 3: machine 2; machines are numbered 0 to 1"),
        (
            "jobshop",
            "2 2\n0 1 1 2\n1 1 0\n",
            r"line 3: 3 numbers; 2 pairs \(machine, duration\) are needed",
        ),
        ("jobshop", "2 2\n0 1 1 2\n", "line 2: the file ends after 1 of 2 lines"),
        ("jobshop", "1 2\n0 1 1 2\n0 1 1 2\n", "line 3: one line too many"),
        ("jobshop", "0 2\n", "line 1: number of jobs is 0; at least 1"),
        ("jobshop", "1 1\n0 1000000001\n", "line 2: '1000000001' is above 1,000,000,000"),
        ("jobshop", "1 1\n0 1_0\n", "line 2: '1_0' is not a whole number"),
        ("taillard", TAILLARD.replace("3 2 1", "3 2 2"), "line 8: machine 2 twice"),
        ("taillard", TAILLARD.replace(" 5 1 4", " 5 1"), "line 4: 2 numbers; 3 are needed"),
        ("taillard", TAILLARD.replace("20 15", "20 x"), "line 2: 'x' is not a whole number"),
        (
            "fjsp",
            FLEXIBLE.replace("2 1 5", "3 1 5"),
            "line 2: operation 2 should have 3 alternatives; the line holds 2",
        ),
        (
            "fjsp",
            FLEXIBLE.replace("1  1 2 7", "1  1 4 7"),
            "line 3: machine 4 in operation 1; machines are numbered 1 to 3",
        ),
        (
            "fjsp",
            FLEXIBLE.replace("1  1 2 7", "1  1 2 7 9"),
            "line 3: 1 numbers are left over after 1 operations",
        ),
        ("fjsp", FLEXIBLE.replace("1  1 2 7", "0"), "line 3: a job with 0 operations"),
        ("fjsp", FLEXIBLE.replace("1.5", "many"), "line 1: flexibility 'many' is not a number"),
        (
            "rcp",
            PATTERSON.replace("5 2 1 1", "5 2 2 1"),
            "line 4: activity 2 needs 2 of resource 2, which has 1",
        ),
        (
            "rcp",
            PATTERSON.replace("1 0 1 4", "1 0 1 5"),
            "line 6: successor 5 of activity 3; activities are numbered 1 to 4",
        ),
        ("rcp", PATTERSON.replace("1 0 1 4", "1 0 1 3"), "line 6: activity 3 is its own successor"),
        ("rcp", PATTERSON.replace("2 2 3", "2 2 2"), "line 3: activity 1 names a successor twice"),
        ("rcp", PATTERSON + "7\n", "line 8: 1 numbers are left over after 4 activities"),
        (
            "rcp",
            "1000000 2\n3 1\n",
            "line 1: 1000000 activities need at least 4,000,000 numbers, the file holds 0",
        ),
        ("psplib", SM.replace("0   N", "2   N"), "'2' nonrenewable resources; none can be read"),
        ("psplib", SM.replace("sink ):  8", "sink ):  9"), "line 2: '9' jobs; 8 are in the file"),
        ("psplib", SM.replace("\n3 1 5 1 0\n", "\n3 2 5 1 0\n"), "mode 2; one mode per activity"),
        ("psplib", SM.replace("\n3 1 5 1 0\n", "\n"), "activity 4 where activity 3 should stand"),
        (
            "psplib",
            SM.replace("\n3 1 5 1 0\n", "\n3 1 5 1\n"),
            "4 numbers; activity, mode, duration and 2 requests",
        ),
        (
            "psplib",
            SM.replace("REQUESTS/DURATIONS", "REQUESTS"),
            "section REQUESTS/DURATIONS is missing",
        ),
        ("psplib", SM.replace("\n4 3\n", "\n4 x\n"), "'x' is not a whole number"),
    ],
)
def test_slips_are_named(format: str, text: str, message: str) -> None:
    assert text not in (SM, FLEXIBLE, PATTERSON, TAILLARD), "the slip is in the text"
    with pytest.raises(FileFormatError, match=message):
        parse(text, "x", format)


def test_what_fits_nothing_is_explained_by_the_nearest_format_first() -> None:
    with pytest.raises(
        FileFormatError,
        match=r"in no known format\n  flexible job shop \(fjsp\): line 3: machine 4",
    ):
        parse(FLEXIBLE.replace("1  1 2 7", "1  1 4 7"), "x")


def test_random_shops_and_projects_are_in_one_format_only() -> None:
    rng = np.random.default_rng(7)
    for _ in range(150):
        n, m = rng.integers(1, 5, size=2).tolist()
        rigid = [
            [[(int(k), int(rng.integers(1, 6)))] for k in rng.permutation(m)] for _ in range(n)
        ]
        sizes = rng.integers(1, m + 1, size=(n, m))
        loose = [
            [[(int(k), 1 + int(k + c) % 5) for k in rng.permutation(m)[:c]] for c in row]
            for row in sizes.tolist()
        ]
        for jobs, formats in ((rigid, ("jobshop", "taillard")), (loose, ("fjsp",))):
            instance = shop_instance(Shop(m, jobs), "x", "x")
            for name in formats:
                assert parse(written(instance, name), "x").hash == instance.hash


def test_a_text_in_two_formats_needs_the_option() -> None:
    """A job of one operation that takes no time, or one activity of length 1 without successors."""
    text = "1 1\n1 1 1 0\n"
    with pytest.raises(
        FileFormatError,
        match="reads as any of fjsp, rcp; say which is meant with the format option",
    ):
        parse(text, "x")
    with pytest.raises(FileFormatError, match=r"in 2 known formats \(fjsp, rcp\)"):
        detect(text)
    assert parse(text, "x", "fjsp").pairs.duration.tolist() == [0]
    assert parse(text, "x", "rcp").pairs.duration.tolist() == [1]
    with pytest.raises(UnknownNameError, match="unknown format 'jobshp'; did you mean 'jobshop'"):
        parse(text, "x", "jobshp")


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    for name, text in originals().items():
        if name == "schedule":
            continue
        path = tmp_path / "misleading.rcp"
        path.write_text(text)
        assert detect(text) == name
        assert load(path).num_tasks > 0


def test_convert(tmp_path: Path) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "b.json"
    source.write_text(STANDARD)
    assert convert(source, target).hash == load(target).hash == load(source).hash
    assert convert(target, tmp_path / "c.sm", to="psplib").hash == load(tmp_path / "c.sm").hash
    with pytest.raises(UnknownNameError, match="unknown format 'cvs'"):
        convert(source, target, to="cvs")


def two_successors() -> Model:
    m = Model("fork")
    pool = m.pool("a")
    first = m.task("first", modes=[m.mode(pool, 1)])
    for name in ("left", "right"):
        m.task(name, modes=[m.mode(pool, 1)], after=first)
    m.minimize(makespan=1)
    return m


@pytest.mark.parametrize(
    ("instance", "format", "message"),
    [
        (
            cluster(),
            "rcp",
            (
                "cannot express .*hard deadlines.*power and energy of 'cluster'; write 'optbench' "
                "instead"
            ),
        ),
        (project(), "fjsp", "has single machines; pool 'r1' has 4"),
        (shop(True), "jobshop", r"allows a task one machine; 'j0\.0' has other modes"),
        (shop(True), "rcp", r"allows one mode per task; 'j0\.0' has 2"),
        (
            two_successors().build(),
            "fjsp",
            "allows chains of tasks only; 'first' has two neighbours",
        ),
        (
            parse("1 2\n1 1 1 5\n", "short"),
            "jobshop",
            "wants every machine once in every job; job 0 differs",
        ),
    ],
)
def test_what_a_format_cannot_say_is_refused(instance: Instance, format: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        written(instance, format)
