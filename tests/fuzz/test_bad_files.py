"""Bad files made by hand: each is refused with a message that names the file, the good ones among
them are read.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from optbench.errors import FileFormatError
from optbench.formats.format_registry import load
from tests.fuzz.bad_files import CASES, DamagedFile
from tests.fuzz.survival import attempt, limit_s

# Those of 15 MB and more that are read before they are refused take seconds:
# benchmarks/fuzz_inputs.py.
QUICK = [case for case in CASES if "within" not in case.name]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_bad_file(case: DamagedFile, tmp_path: Path) -> None:
    path = tmp_path / "file"
    given = case.make(path) or path
    message = attempt(given, None).message
    assert (message is None) == (case.code == 0), message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("native, negative units", "units of task 'second' is -5.0; it must be positive"),
        ("native, NaN", "NaN is not JSON; write null"),
        ("native, text for a number", r"pools\.idle_w\[0\] is '50 W'; it must be a finite number"),
        ("native, unknown key", "unknown key 'tasks.deadlines'; did you mean 'deadline'"),
        ("native, missing key", "unknown key 'modes.need'; did you mean 'needs'"),
        ("native, key twice", "key 'name' stands twice"),
        ("native, wrong version", "version is 7; it must be 1 to 2"),
        ("native, wrong format", "format is 'optbench-result'; it must be 'optbench-instance'"),
        ("JSON of something else", "not an optbench file: the key 'format' is missing"),
        ("native, unknown metric", r"makespam_s': unknown metric; did you mean 'makespan_s'"),
        ("native, column too short", r"tasks\.weight has 1 entries; it must have 3"),
        ("native, kind out of range", "kind of task 'third' is 9"),
        ("native, truncated", "line 34, column 14: not JSON.*cut off"),
        ("native, cyclic", "cycle: 'second' -> 'first' -> 'second'"),
        ("project, cyclic", "cycle: 'a3' -> 'a2' -> 'a3'"),
        (
            "job shop, negative duration",
            r"in no known format\n  job shop, standard layout \(jobshop\): line 2: '-2' is below 0",
        ),
        ("job shop, NaN duration", "line 2: 'nan' is not a whole number"),
        ("a million machines", "number of machines is 1,000,000; at most 4,096"),
        ("UTF-16", "UTF-16 text; save it as UTF-8"),
        ("Latin-1 text", "line 1: byte 0xe4 at offset 7 is not UTF-8"),
        ("gzip", "gzip-compressed; unpack it first"),
        ("binary", "NUL byte at offset 0"),
        ("empty", "the file is empty"),
        ("directory", "a directory; give the path of a file"),
        ("missing file", "no such file"),
        ("named pipe", "not a regular file"),
        ("200 MB of digits", "200.0 MB; files up to 16 MB are read.*OPTBENCH_MAX_FILE_MB=201"),
        ("JSON nested 100,000 deep", "nested hundreds deep"),
        ("whole number of 10,000 digits", "more than 4,300 digits"),
    ],
)
def test_the_message_names_the_culprit(name: str, expected: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    path = tmp_path / "file"
    given = case.make(path) or path
    with pytest.raises(FileFormatError, match=f"(?s){expected}"):
        load(given)


def test_the_size_limit_can_be_overridden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wide.txt"
    path.write_text("1 1\n0 5\n" + "# remark\n" * 200_000)  # 1.8 MB
    assert load(path).num_tasks == 1
    monkeypatch.setenv("OPTBENCH_MAX_FILE_MB", "1")
    with pytest.raises(FileFormatError, match=r"1\.7 MB; files up to 1 MB are read"):
        load(path)
    monkeypatch.setenv("OPTBENCH_MAX_FILE_MB", "many")
    with pytest.raises(FileFormatError, match="OPTBENCH_MAX_FILE_MB is 'many'"):
        load(path)


def test_a_path_that_is_no_path() -> None:
    with pytest.raises(FileFormatError, match="not a path"):
        load("a\0b")


def test_hangs_are_noticed() -> None:
    end = time.monotonic() + 20
    with pytest.raises(TimeoutError, match=r"still reading after 0\.01 s"), limit_s(0.01):
        while time.monotonic() < end:
            pass
