"""Seals of the bank: a keyed hash of an entry, and the hash of the code that proved it.

The key is created once per user, outside of the bank: an entry whose seal does not match was
changed, comes from another machine, or was proved by other code. Its proof is then repeated, and
the entry is dropped if that fails.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.util
import os
import secrets
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

KEY_BYTES = 32
# Packages whose code determines what a certificate proves, those that determine what a solver's
# model proves, and the libraries that solve it.
OF_PROOFS = ("model", "bounds")
OF_SOLVERS = ("model", "bounds", "views", "plugins", "sim")
LIBRARIES = ("ortools", "highspy", "numpy", "scipy", "pyomo")


def key_file() -> Path:
    """Return the path of the key: ``$XDG_STATE_HOME/optbench/bank.key``, by default below
    ``~/.local/state``.
    """
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "optbench" / "bank.key"


def seal_key() -> bytes:
    """Return the user's key, created on first use; a key of this process alone where none can be
    stored, so that proofs are repeated.
    """
    path = key_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
        key = path.read_bytes()
    except OSError:
        key = b""
    return key if len(key) == KEY_BYTES else secrets.token_bytes(KEY_BYTES)


def seal(key: bytes, *values: object) -> str:
    """Return a keyed hash of values, each with its type and length."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for value in values:
        text = repr(value).encode()
        digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()


@cache
def proof_code() -> str:
    """Return the hash of the code that proves certificates."""
    return _digest(_sources(OF_PROOFS))


@cache
def solver_code(module: str) -> str:
    """Return the hash of the core's models, the libraries' versions and the files of a solver's
    module, if it has one.
    """
    return _digest([*_sources(OF_SOLVERS), *_plugin_files(module)], versions())


def versions() -> dict[str, str]:
    """Return the installed versions of the libraries that solve."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _sources(rooms: Iterable[str]) -> list[Path]:
    root = Path(__file__).resolve().parents[2]
    return [path for room in rooms for path in sorted((root / room).rglob("*.py"))]


def _plugin_files(module: str) -> list[Path]:
    """Return a solver's module, with the private modules beside it or the whole of its package;
    empty if it is not found.
    """
    try:
        spec = importlib.util.find_spec(module) if module else None
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return []
    path = Path(spec.origin)
    others = path.parent.rglob("*.py") if path.name == "__init__.py" else path.parent.glob("_*.py")
    return [path, *sorted(others)]


def _digest(files: Iterable[Path], extra: object = None) -> str:
    digest = hashlib.sha256(repr(extra).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]
