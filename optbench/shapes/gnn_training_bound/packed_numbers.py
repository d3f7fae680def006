"""Whole numbers as text in certificates: differences or values, compressed, base 64."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from optbench.shapes.gnn_training.training_data import Ints


def packed(values: Ints) -> str:
    """Return numbers as text, eight bytes each before compression."""
    # Bytes of equal weight stand together: the high ones are mostly 0.
    planes = np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, 8).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()


def unpacked(text: str, most: int) -> Ints:
    """Return the numbers of an untrusted text, of which there may be at most ``most``."""
    if type(text) is not str:
        raise ValueError(f"packed numbers are {text!r:.20}")
    unpack = zlib.decompressobj()
    planes = unpack.decompress(base64.b64decode(text, validate=True), 8 * most + 1)
    if len(planes) > 8 * most or len(planes) % 8 or not unpack.eof:
        raise ValueError(f"{len(planes)} bytes of packed numbers; there may be {8 * most}")
    bytes_of = np.frombuffer(planes, dtype=np.uint8).reshape(8, -1).T
    return np.ascontiguousarray(bytes_of).view("<i8").ravel().astype(np.int64)


def packed_rising(values: Ints) -> str:
    """Return numbers that rise, as their differences."""
    return packed(np.diff(values, prepend=0))


def unpacked_rising(text: str, most: int) -> Ints:
    """Return numbers that rise from at least 0."""
    steps = unpacked(text, most)
    if (steps < 0).any() or (steps[1:] < 1).any():
        raise ValueError("packed numbers that should rise do not")
    values = np.cumsum(steps)
    if (values < 0).any():
        raise ValueError("packed numbers that rise leave 64 bits")
    return values
