"""Files appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optbench.files import replacing, write_whole


def test_a_file_is_replaced_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "inner" / "record.json"
    write_whole(path, b"old")
    write_whole(path, "new: ä")
    assert path.read_bytes() == b"new: \xc3\xa4"
    assert [each.name for each in path.parent.iterdir()] == ["record.json"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640  # 666 without what 027 takes away


@pytest.mark.parametrize(
    "error", [OSError("disk is full"), KeyboardInterrupt()], ids=["error", "stop"]
)
def test_an_exception_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as fresh:
        fresh.write_text("half of the n")
        raise error
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "old"}


def test_a_name_as_long_as_file_systems_allow(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)  # 254 bytes of at most 255
    write_whole(path, b"x")
    assert path.read_bytes() == b"x"
