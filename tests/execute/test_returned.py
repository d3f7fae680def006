"""What a cell left is read as data, and only if it is a sensible file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optbench.execute.validate_answer import read_answer
from optbench.sandbox.job_folder import UnreadableFileError, read_bounded_file, remove_folder
from optbench.store.records import Reason


def test_an_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"result": {"objective": 3}}')
    assert read_answer(tmp_path) == {"result": {"objective": 3}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[1, 2]", "a list, not an object"),
        (b'{"objective": NaN}', "NaN is not JSON"),
        (b'{"a": 1, "a": 2}', "key 'a' stands twice"),
        (b'{"a": ', "cut off"),
        (b"\xff\xfe", "invalid start byte"),
        (b"[" * 200_000, "nested hundreds deep"),
    ],
)
def test_what_is_no_answer(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "answer.json").write_bytes(content)
    found = read_answer(tmp_path)
    assert isinstance(found, Reason) and found.kind == "nonsense" and says in found.message


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name, says in (
        ("link", "symbolic links"),
        ("pipe", "not a regular file"),
        ("gone", "No such file"),
    ):
        with pytest.raises(UnreadableFileError, match=says):
            read_bounded_file(tmp_path / name)


def test_what_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (1 << 21))
    assert len(read_bounded_file(tmp_path / "large", max_mb=2)) == 1 << 21
    with pytest.raises(UnreadableFileError, match="large has 2 MB; 1 MB are allowed"):
        read_bounded_file(tmp_path / "large", max_mb=1)


def test_what_is_left_is_removed_however_deep_it_is(tmp_path: Path) -> None:
    """Deeper than calls may be nested (1,000), and than a path may be long (4,096 bytes)."""
    outside, folder = tmp_path / "outside", tmp_path / "cell"
    outside.mkdir()
    (outside / "kept").write_text("")
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "closed").mkdir()
    (folder / "closed" / "file").write_text("")
    (folder / "closed").chmod(0)
    os.mkfifo(folder / "pipe")
    place = os.open(folder, os.O_RDONLY)
    for _ in range(1200):
        for name in ("down", "beside"):
            os.mkdir(name, dir_fd=place)
        below = os.open("down", os.O_RDONLY, dir_fd=place)
        os.symlink(outside, "link", dir_fd=below)
        os.close(place)
        place = below
    os.close(place)
    remove_folder(folder)
    assert list(tmp_path.iterdir()) == [outside] and [path.name for path in outside.iterdir()] == [
        "kept"
    ]


def test_a_link_is_removed_and_not_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    for name in ("link", "file", "nothing"):
        remove_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
