"""Seals: one key per user, and hashes of exactly the code that they name."""

from __future__ import annotations

import hashlib
import hmac
import stat
import sys
from pathlib import Path

import pytest

from optbench.bounds.bank import seals
from optbench.bounds.bank.seals import KEY_BYTES, key_file, seal, seal_key


def test_the_key_is_made_once_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "not" / "there yet"))
    key = seal_key()
    assert len(key) == KEY_BYTES and seal_key() == key
    path = key_file()
    assert (
        path == tmp_path / "not" / "there yet" / "optbench" / "bank.key"
        and path.read_bytes() == key
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert key_file() == tmp_path / ".local" / "state" / "optbench" / "bank.key"


def test_without_a_place_for_a_key_there_is_another_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert len(seal_key()) == KEY_BYTES and seal_key() != seal_key()
    # A key of another length is none.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "optbench").mkdir()
    (tmp_path / "optbench" / "bank.key").write_bytes(b"short")
    assert len(seal_key()) == KEY_BYTES and seal_key() != seal_key()


def test_a_seal_tells_values_types_and_lengths_apart() -> None:
    key = b"k" * KEY_BYTES
    assert seal(key, "ab", 7) == hmac.new(key, b"4:'ab'1:7", hashlib.sha256).hexdigest()
    different = [
        seal(key, "ab", "c"),
        seal(key, "a", "bc"),
        seal(key, "abc"),
        seal(key, 1),
        seal(key, "1"),
        seal(b"", 1),
    ]
    assert len(set(different)) == len(different)


def test_the_code_of_proofs_is_that_of_model_and_bounds() -> None:
    package = Path(seals.__file__).parents[2]
    assert seals._sources(("bounds",)) == sorted((package / "bounds").rglob("*.py"))
    assert Path(seals.__file__) in seals._sources(seals.OF_PROOFS)
    assert package / "model" / "instance.py" in seals._sources(seals.OF_PROOFS)
    assert len(seals.proof_code()) == 32


def test_a_plug_in_is_its_module_and_the_private_ones_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sealed_alone.py", "_sealed_helper.py", "sealed_other.py"):
        (tmp_path / name).write_text("")
    package = tmp_path / "sealed_package"
    (package / "deep").mkdir(parents=True)
    for path in (package / "__init__.py", package / "deep" / "part.py"):
        path.write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert seals._plugin_files("sealed_alone") == [
        tmp_path / "sealed_alone.py",
        tmp_path / "_sealed_helper.py",
    ]
    found = seals._plugin_files("sealed_package")
    assert (
        set(found) == {package / "__init__.py", package / "deep" / "part.py"}
        and found[0].name == "__init__.py"
    )


@pytest.mark.parametrize("module", ["", "sealed_nowhere", "sealed_nowhere.inner", "sys"])
def test_what_has_no_file_has_no_code(module: str) -> None:
    assert module != "sys" or "sys" in sys.builtin_module_names
    assert seals._plugin_files(module) == []


def test_a_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"1")
    text = repr(None).encode() + b"a.py\0" + hashlib.sha256(b"1").digest()
    assert seals._digest([path]) == hashlib.sha256(text).hexdigest()[:32]
    assert (
        seals._digest([path], {"numpy": "1"})
        != seals._digest([path], {"numpy": "2"})
        != seals._digest([path])
    )


def test_versions_are_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "LIBRARIES", ("sealed-nowhere", "numpy"))
    assert list(seals.versions()) == ["numpy"]
