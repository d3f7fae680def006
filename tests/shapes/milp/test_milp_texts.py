"""MPS and LP files by hand, and what is wrong in a file with its line."""

from __future__ import annotations

import math

import pytest

from optbench.errors import FileFormatError, ModelError
from optbench.shapes.milp.lp_format import read_lp
from optbench.shapes.milp.mps_format import read_mps

# Ranges on E rows: [b, b + r] for r ≥ 0 and [b + r, b] below; on L and G rows |r|.
MPS = """* a comment
NAME          sample
OBJSENSE
    MAX
ROWS
 N  profit
 L  cap
 G  need
 E  up
 E  down
 N  spare
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    x         profit    2.5   cap  1
    x         need      1     spare 4
    MARKER                 'MARKER'                 'INTEND'
    y         cap       0.1   up   1
    z         down      1
RHS
    RHS       profit   -3     cap  7.3
    RHS       need      1     up   2
    RHS       down      2
RANGES
    RNG       cap       0.2   up   1.5
    RNG       need      4     down -1.5
BOUNDS
 UP BND       y         4.5
 UP BND       z        -1
ENDATA
"""
LP = """\\ a comment
Minimize
 cost: 3 x - 2.5 y
  + 4
Subject To
 both: -1 <= x + 2 y <= 4.5
 x - y >= -3
 same: 2 x + 3 = 7
Bounds
 x <= 9
 y free
 -3 <= z <= inf
General
 x
Binary
 w
End
"""


def test_an_mps_file_by_hand() -> None:
    program = read_mps(MPS, "file")
    assert (program.name, program.sense, program.constant) == ("sample", "max", 3.0)
    assert program.columns == ("x", "y", "z") and program.cost.tolist() == [2.5, 0, 0]
    # An integer column without bounds is binary; z may be negative since only its upper side is.
    assert program.lower.tolist() == [0, 0, -math.inf] and program.upper.tolist() == [1, 4.5, -1]
    assert program.integer.tolist() == [True, False, False]
    assert program.rows == ("cap", "need", "up", "down")
    # 7.3 - 0.2 as decimals is 7.1, not 7.1 and a half ulp.
    assert program.row_lower.tolist() == [7.1, 1, 2, 0.5]
    assert program.row_upper.tolist() == [7.3, 5, 3.5, 2]


def test_an_lp_file_by_hand() -> None:
    program = read_lp(LP, "file")
    assert (program.sense, program.constant) == ("min", 4.0)
    assert program.columns == ("x", "y", "z", "w") and program.cost.tolist() == [3, -2.5, 0, 0]
    assert program.lower.tolist() == [0, -math.inf, -3, 0]
    assert program.upper.tolist() == [9, math.inf, math.inf, 1]
    assert program.integer.tolist() == [True, False, False, True]
    assert program.rows == ("both", "row2", "same")
    assert program.row_lower.tolist() == [-1, -3, 4] and program.row_upper.tolist() == [
        4.5,
        math.inf,
        4,
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cap  7.3", "cap  7,3", "line 20: '7,3' is not a number"),
        ("    z         down", "    z         dwn ", "line 18: no row 'dwn'; did you mean 'down'"),
        (" UP BND       y", " UB BND       y", "line 27: bound 'UB'; it must be one of UP, LO"),
        ("ENDATA\n", "", "the file ends without ENDATA"),
        (" E  up\n", " E  up\n E  up\n", "line 10: row 'up' stands twice"),
        ("    MAX\n", "    MAXI\n", "line 4: objective sense 'MAXI'"),
        ("RANGES", "QUADOBJ", "line 23: section QUADOBJ: only linear"),
        ("2.5   cap  1", "1e300   cap  1", "line 14: 1e300 must be finite and at most 1e"),
        ("'INTEND'", "'INTSTOP'", "line 16: marker"),
        ("cap  1\n", "cap\n", "line 14: 'profit 2.5 cap'; expected pairs"),
        (" UP BND       y         4.5", " UP BND       q         4.5", "no column 'q'"),
        ("cap  7.3", "cap  7_3", "line 20: '7_3' is not a number"),
        ("cap  7.3", "cap  \u0667", "line 20: '\u0667' is not a number"),
        ("cap  7.3", "cap  nan", "line 20: 'nan' is not a number"),
        ("    RNG       need", "    RN2       need", "two sets in section RANGES, 'RNG' and 'RN2'"),
        ("    RHS       down ", "    down  ", "two sets in section RHS, 'RHS' and one without"),
        ("    RHS       down ", "    RHS       up ", "line 22: row 'up' has two right-hand sides"),
        ("need      4     down", "need      4     up", "line 25: row 'up' has two ranges"),
        (" UP BND       z ", " UP BND       y ", "line 28: column 'y' has two bounds of kind UP"),
        (
            " UP BND       z        -1",
            " BV BND       y",
            "line 28: a binary column (BV) whose bounds",
        ),
    ],
)
def test_a_wrong_mps_file_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    assert old in MPS
    with pytest.raises((FileFormatError, ModelError)) as refused:
        read_mps(MPS.replace(old, new, 1), "file")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3 x -", "3 x^2 -", "line 3: '^': only linear terms"),
        ("Minimize", "Least", "line 2: 'Least'; expected Minimize or Maximize"),
        ("x - y >= -3", "x - y -3", "line 8: 'same'; expected <=, >= or ="),
        ("\nEnd\n", "\n", "expected End: is the file cut off?"),
        ("End\n", "End\nmore\n", "expected nothing after End"),
        ("General", "SOS1", "section of a linear programme"),
        ("y free", "y fre", "line 11: 'fre'"),
        ("x + 2 y <= 4.5", "x + 2 y >= 4.5", "line 6: '>='; expected '<=' again, or nothing"),
        ("x + 2 y <= 4.5", "x + 2 y = 4.5", "line 6: '='; expected '<=' again, or nothing"),
        ("-3 <= z <= inf", "-3 <= z = 4", "line 12: '='; expected '<=' again, or nothing"),
        (" w\nEnd", " w\n x\nEnd", "line 17: column 'x' is binary, and its bounds are 0.0 and 9.0"),
        ("x - y >= -3", "both: x - y >= -3", "line 7: row 'both' stands twice"),
        ("x <= 9", "x <= \u0669", "line 10: unexpected"),
    ],
)
def test_a_wrong_lp_file_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    assert old in LP
    with pytest.raises((FileFormatError, ModelError)) as refused:
        read_lp(LP.replace(old, new, 1), "file")
    assert message in str(refused.value)
