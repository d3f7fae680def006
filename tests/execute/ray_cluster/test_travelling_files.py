"""Files travel by their content: references in the payload, complete files in a node's cache."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.execute.base import Job
from optbench.execute.ray_cluster.cell_lease import with_files
from optbench.execute.ray_cluster.travelling_files import (
    CHECKED,
    KEPT_DAYS,
    REFERENCE,
    SECONDS_PER_DAY,
    ContentCache,
    FileDigests,
    comparison_of,
    references,
    with_paths,
    with_references,
)
from optbench.study.declared import CellBudget


def job_of(folder: Path, **payload: object) -> Job:
    return Job("key", "solve", payload, CellBudget(), folder)


def test_files_of_a_payload_become_references_and_paths_again(tmp_path: Path) -> None:
    instance, checkpoint = tmp_path / "i.pickle", tmp_path / "net.pt"
    instance.write_bytes(b"instance")
    checkpoint.write_bytes(b"weights")
    (tmp_path / "folder").mkdir()
    params = {
        "checkpoint": str(checkpoint),
        "both": [str(checkpoint), "0.5"],
        "folder": str(tmp_path / "folder"),
        "k": 3,
        "missing": "/nowhere/net.pt",
    }
    payload, contents = with_references(
        job_of(tmp_path, instance_file=str(instance), params=params, seed=1)
    )
    digest = hashlib.sha256(b"weights").hexdigest()
    assert payload["params"]["checkpoint"] == {REFERENCE: digest, "name": "net.pt"}
    # A folder, a file that is missing, and what is no file stay as they are.
    for name in ("folder", "k", "missing"):
        assert payload["params"][name] == params[name]
    assert [each.content for each in contents] == [b"instance", b"weights", b"weights"]
    assert [each[REFERENCE] for each in references(payload)] == [each.digest for each in contents]
    cache = ContentCache(tmp_path / "cache")
    places = {
        (each.digest, each.name): cache.keep(each.digest, each.name, each.content)
        for each in contents
    }
    there = with_paths(payload, places)
    assert Path(there["instance_file"]).read_bytes() == b"instance"
    assert Path(there["params"]["checkpoint"]).name == "net.pt"
    assert there["params"]["both"] == [there["params"]["checkpoint"], "0.5"]
    assert Path(there["params"]["checkpoint"]).read_bytes() == b"weights" and there["seed"] == 1


def test_a_content_is_written_once_and_never_half(tmp_path: Path) -> None:
    cache, digest = ContentCache(tmp_path), hashlib.sha256(b"abc").hexdigest()
    place = cache.keep(digest, "a", b"abc")
    before = place.stat().st_ino
    assert cache.keep(digest, "a", b"abc") == place and place.stat().st_ino == before
    # Each process looks at a content once; this one had cut it off, and another had changed it.
    for wrong in (b"a", b"abd"):
        place.chmod(0o644)
        place.write_bytes(wrong)
        CHECKED.discard(place)
        assert cache.find(digest, "a") is None
        assert cache.keep(digest, "a", b"abc").read_bytes() == b"abc"
    assert place.stat().st_mode & 0o777 == 0o444
    with pytest.raises(OptbenchError, match="b: what arrived on this node is not what was sent"):
        cache.keep(digest, "b", b"abd")
    assert not (tmp_path / "files" / digest / "b").exists()


def test_what_was_not_used_for_a_month_is_removed(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path)
    old, new = (
        cache.keep(hashlib.sha256(content).hexdigest(), "a", content) for content in (b"1", b"2")
    )
    long_ago = time.time() - (KEPT_DAYS + 1) * SECONDS_PER_DAY
    os.utime(old.parent, (long_ago, long_ago))
    cache.remove_unused()
    assert not old.exists() and new.exists()


def test_what_a_node_has_is_not_fetched_again(tmp_path: Path) -> None:
    instance = tmp_path / "i.json"
    instance.write_bytes(b"instance")
    given = job_of(tmp_path, instance_file=str(instance), params={})
    payload, (content,) = with_references(given)
    fetched: list[str] = []

    def fetch(reference: str) -> bytes:
        fetched.append(reference)
        return content.content

    cache = ContentCache(tmp_path / "cache")
    for _ in range(2):
        there = with_files({"payload": payload}, ["first"], cache, fetch)
        assert Path(there["payload"]["instance_file"]).read_bytes() == b"instance"
    assert fetched == ["first"]


def test_a_file_is_hashed_again_only_if_it_has_changed(tmp_path: Path) -> None:
    instance, digests = tmp_path / "i.json", FileDigests()
    instance.write_bytes(b"one")
    given = job_of(tmp_path, instance_file=str(instance), params={})
    before = comparison_of(with_references(given, digests)[0])
    assert before == hashlib.sha256(b"one").hexdigest()
    # The same size, and the same time as far as the file system says: it is not read again.
    facts = instance.stat()
    instance.write_bytes(b"two")
    os.utime(instance, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert comparison_of(with_references(given, digests)[0]) == before
    os.utime(instance, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    after = comparison_of(with_references(given, digests)[0])
    assert after == hashlib.sha256(b"two").hexdigest()
    assert comparison_of({}) == ""
