"""Random damage of files, as by disks and editors; a reader must refuse it with one clear
message.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

Operation = Callable[[bytes, np.random.Generator], bytes]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
TOKEN = re.compile(rb'"[^"\n]*"|[^\s,:|\[\]{}"]+')
WORD = re.compile(rb"[A-Za-z_]{3,}")
# Values that numbers are replaced with.
NASTY = (
    b"-1",
    b"0",
    b"1",
    b"2",
    b"1.5",
    b"-0.0",
    b"1e308",
    b"1e309",
    b"-1e400",
    b"1e-320",
    b"1e3",
    b"NaN",
    b"-Infinity",
    b"nan",
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"999999999",
    b"1000000000",
    b"1000000001",
    b"2147483648",
    b"9007199254740993",
    b"9223372036854775808",
    b"1" + b"0" * 30,
    b"1" + b"0" * 5000,
    b"Unknown",
    b"2024-02-30T25:61:00",
    b"9999999999",
    b"1-02:03:04",
    b"n[0-999999999]",
    b"gres/gpu=99999999",
    b"0x10",
    b"1_000",
    b"1,5",
    "\u0663".encode(),
    "\u00bd".encode(),
    b"+7",
    b"--3",
)
INTRUDERS = (
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\r",
    b"\x1a",
    b"\x0c",
    b"\xe2\x80\xa8",
    b"#",
    b"//",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"\xed\xa0\x80",
    b"\\ud800",
    b'"',
    b",",
    b"}",
    b"\n\n",
    b"\t",
    b"1 " * 500,
)


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip a bit at a random place, one to eight times."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def swap_tokens(data: bytes, rng: np.random.Generator) -> bytes:
    tokens = list(TOKEN.finditer(data))
    if len(tokens) < 2:
        return data
    i, j = sorted(rng.choice(len(tokens), 2, replace=False).tolist())
    a, b = tokens[i], tokens[j]
    out: bytes = data[: a.start()] + b[0] + data[a.end() : b.start()] + a[0] + data[b.end() :]
    return out


def change_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a number by another value, or add or subtract one."""
    numbers = list(NUMBER.finditer(data))
    if not numbers:
        return data
    match = numbers[int(rng.integers(len(numbers)))]
    value = NASTY[int(rng.integers(len(NASTY)))]
    if match[0].isdigit() and rng.random() < 0.3:
        value = str(int(match[0][:18]) + int(rng.choice((-1, 1)))).encode()
    return data[: match.start()] + value + data[match.end() :]


def change_word(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a letter of a word, which makes keys and titles unknown."""
    words = list(WORD.finditer(data))
    if not words:
        return data
    at = int(rng.integers(*words[int(rng.integers(len(words)))].span()))
    return data[:at] + bytes([int(rng.integers(97, 123))]) + data[at + 1 :]


def duplicate_line(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    i = int(rng.integers(len(lines)))
    return b"".join([*lines[: i + 1], lines[i], *lines[i + 1 :]])


def delete_line(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[int(rng.integers(len(lines)))]
    return b"".join(lines)


def swap_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.splitlines(keepends=True)
    i, j = rng.integers(len(lines), size=2).tolist()
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def delete_block(data: bytes, rng: np.random.Generator) -> bytes:
    start = int(rng.integers(len(data)))
    return data[:start] + data[start + int(rng.integers(1, 200)) :]


def copy_block(data: bytes, rng: np.random.Generator) -> bytes:
    start, at = rng.integers(len(data), size=2).tolist()
    return data[:at] + data[start : start + int(rng.integers(1, 200))] + data[at:]


def intrude(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + INTRUDERS[int(rng.integers(len(INTRUDERS)))] + data[at:]


def noise(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + rng.bytes(int(rng.integers(1, 64))) + data[at + 1 :]


# Operations that depend on the format's structure are listed more than once, to be drawn more
# often.
OPERATIONS: tuple[Operation, ...] = (
    flip_bits,
    truncate,
    swap_tokens,
    swap_tokens,
    change_number,
    change_number,
    change_number,
    change_word,
    duplicate_line,
    delete_line,
    swap_lines,
    delete_block,
    copy_block,
    intrude,
    noise,
)


def damaged(data: bytes, seed: int) -> tuple[str, bytes]:
    """Damage data by one to three operations; the seed determines them.

    Returns the names of the operations and the damaged data."""
    rng = np.random.default_rng(seed)
    done = []
    for _ in range(int(rng.choice((1, 1, 1, 2, 3)))):
        operation = OPERATIONS[int(rng.integers(len(OPERATIONS)))]
        if data:
            data = operation(data, rng)
            done.append(operation.__name__)
    return "+".join(done), data
