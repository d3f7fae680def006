"""Code that several processes have compiled into one cache does what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from optbench.compiling.kernel_table import KERNELS, prepare

SORT = "{source}\nimport numpy as np\n@njit(cache=True)\ndef f(a):\n    return np.sort(a)\n"
ARGSORT = "{source}\nimport numpy as np\n@njit(cache=True)\ndef g(a):\n    return np.argsort(a)\n"
# With three small functions first, numba 0.68 numbers the helpers of `sort` here and of `argsort`
# there alike.
BEFORE = "import numba\nfor _ in range(3):\n    numba.njit(lambda x: x + 1)(1)\n"
VALUES = "import numpy as np\na = np.array([50, 30, 10, 40] * 10)\n"
BOTH = VALUES + (
    "from first import f\nfrom second import g\n"
    "right = (f(a) == np.sort(a)).all(), (a[g(a)] == np.sort(a)).all()\n"
    "print(*right, *(sum(each.stats.cache_hits.values()) for each in (f, g)))"
)


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=110
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from numba import njit", "True False 1 1"),
        ("from optbench.compiling.compiled import njit", "True True 1 1"),
    ],
    ids=["numba", "ours"],
)
def test_a_cache_filled_by_two_processes(tmp_path: Path, source: str, expected: str) -> None:
    """Whether sort and argsort are right, each loaded from the cache.

    The first case is the fault of numba 0.68.1; when it fails, numba has been mended and `compiled`
    can go.
    """
    (tmp_path / "first.py").write_text(SORT.format(source=source))
    (tmp_path / "second.py").write_text(ARGSORT.format(source=source))
    run(f"{VALUES}{BEFORE}from first import f\nf(a)", tmp_path)
    run(f"{VALUES}from second import g\ng(a)", tmp_path)
    assert run(BOTH, tmp_path) == expected


def test_a_forked_child_counts_from_elsewhere() -> None:
    code = (
        "import os\nfrom optbench.compiling import compiled\n"
        "first = next(compiled.FunctionIdentity._unique_ids)\n"
        "if os.fork() == 0:\n"
        "    os._exit(abs(next(compiled.FunctionIdentity._unique_ids) - first) < 10**6)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    assert run(code, Path.cwd()) == "0"


CONSTANTS = """
import numpy as np
from optbench.compiling.compiled import inner, njit

@inner()
def pick(a, n):
    return a[n % len(a)]

@njit()
def total(a, k):
    return pick(a, 0) + pick(a, 1) + pick(a, k) + pick(a, 7)

a = np.arange(5.0)
print(total(a, 3), len(pick.signatures), len(total.signatures))
"""


def test_a_constant_argument_is_no_reason_to_compile_again(tmp_path: Path) -> None:
    (tmp_path / "constants.py").write_text(CONSTANTS)
    assert run("import constants", tmp_path) == "6.0 1 1"


FIRST_NEEDED_INSIDE = """
from optbench.compiling.compiled import inner, njit

@njit()
def doubled(x):
    return 2 * x

@inner()
def middle(x):
    return doubled(x) + 1

@njit()
def outer(x):
    return middle(x)

print(outer(3), doubled(4))
"""


def test_python_calls_what_inner_code_was_the_first_to_need(tmp_path: Path) -> None:
    """The function needs machine code of its own, also where it is compiled on the way to another
    one's.
    """
    (tmp_path / "called.py").write_text(FIRST_NEEDED_INSIDE)
    for _ in range(2):
        assert run("import called", tmp_path) == "7 8"


RAISES = """
import numpy as np
from optbench.compiling.compiled import inner, njit

@inner()
def check(a, n):
    if n > len(a):
        raise ValueError("too long", n)
    b = np.sort(a)
    return b[n - 1]

@njit()
def checked(a, n):
    return check(a, n)

a = np.array([3.0, 1.0, 2.0])
for n in (1, 3, 4):
    try:
        print(checked(a, n))
    except ValueError as error:
        print(error.args)
"""


def test_inner_code_raises_as_ever(tmp_path: Path) -> None:
    """Once when it is compiled, once from the cache: what it raises is part of the code of its
    caller.
    """
    (tmp_path / "raises.py").write_text(RAISES)
    for _ in range(2):
        assert run("import raises", tmp_path) == "1.0\n3.0\n('too long', 4)"


def test_code_compiled_from_another_source_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = KERNELS["deductions"].entries[1]
    prepare(["deductions"])
    kept = entry.function._cache
    assert kept.files.has(kept.key(entry.signature))
    monkeypatch.setattr(kept.files, "stamp", "another")
    assert not kept.files.has(kept.key(entry.signature))


def test_two_signatures_have_two_files() -> None:
    """numba numbers them in an index, which two processes at once may both begin with 1."""
    kept = KERNELS["rules"].entries[0].function._cache
    files = {
        kept.files.file(kept.key(signature), Path("x")).name
        for signature in ("(int64,)", "(float64,)")
    }
    assert len(files) == 2
