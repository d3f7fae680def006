"""The same files read a second time, by Python's json, by HiGHS, by patterns, and by rules written
again.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.fuzz.lp_by_patterns import UnusualError, lp_by_patterns
from tests.second_verifier.verifier import judge

Json = dict[str, Any]
# HiGHS drops coefficients that are smaller than this when it reads a file.
SMALL = 1e-9
# Keys of an instance that may be left out, with what stands for them.
ABSENT: tuple[Any, ...] = (None, [], {})


def same_values(said: Json, written: Json) -> str | None:
    """Compare two documents value by value; what is absent is null."""
    if said.get("links") and written.get("links"):
        said, written = ({**each, "links": _links(each["links"])} for each in (said, written))
    return _difference("", said, written)


def _links(table: Json) -> Json:
    """Links by their two pools; those of a pool with itself change nothing."""
    ends = zip(table["sender"], table["receiver"], strict=True)
    return {
        str(pair): {key: column[k] for key, column in table.items()}
        for k, pair in enumerate(ends)
        if pair[0] != pair[1]
    }


def _difference(path: str, one: Any, other: Any) -> str | None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            found = _difference(f"{path}.{key}", one.get(key), other.get(key))
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{path}: {len(one)} entries, written {len(other)}"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (_difference(f"{path}[{k}]", a, b) for k, (a, b) in pairs)), None)
    numbers = isinstance(one, (int, float)) and isinstance(other, float)
    same = (float(one) if numbers else one) == other  # a whole number may stand for a float
    if same and isinstance(one, bool) == isinstance(other, bool):
        return None
    if one in ABSENT and other in ABSENT:
        return None
    return f"{path} is {one!r:.60}, written as {other!r:.60}"


def said_of_programme(said: Json, written: Json) -> str | None:
    """Compare programmes; entries of one place are added, and rows without sides are left out."""
    one, other = dense(said), dense(written)
    return next(
        (f"{key}: {one[key]} and {other[key]}" for key in one if one[key] != other[key]), None
    )


def number(value: Any) -> Any:
    """A whole number as the float that it is in a programme."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def dense(data: Json) -> Json:
    """The columns and rows of a programme by name."""
    columns = {
        name: tuple(number(data[key][j]) for key in ("cost", "lower", "upper", "integer"))
        for j, name in enumerate(data["columns"])
    }
    rows = {}
    for i, name in enumerate(data["rows"]):
        sides = (number(data["row_lower"][i]), number(data["row_upper"][i]))
        entries: dict[str, float] = {}
        for k in range(data["row_ptr"][i], data["row_ptr"][i + 1]):
            column = data["columns"][data["index"][k]]
            entries[column] = entries.get(column, 0.0) + float(data["value"][k])
        if sides != (None, None):
            rows[name] = (
                *sides,
                {key: value for key, value in entries.items() if abs(value) > SMALL},
            )
    return {
        "sense": data["sense"],
        "constant": float(data["constant"]),
        "columns": columns,
        "rows": rows,
    }


def same_programme(path: Path, written: Json) -> str | None:
    """Compare with a second reading: MPS by HiGHS, LP by patterns; UnusualError without one."""
    if path.suffix == ".lp":
        one = lp_by_patterns(path.read_text())
    else:
        found = by_highs(path)
        if found is None:
            raise UnusualError
        one = found
    other = dense(written)
    for key in one:
        if one[key] != other[key]:
            return f"{key}: the second reading is {one[key]}, optbench's {other[key]}"
    return None


def by_highs(path: Path) -> Json | None:
    """The programme that HiGHS reads."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    if highs.readModel(str(path)) == highspy.HighsStatus.kError:
        return None
    lp = highs.getLp()
    names = list(lp.col_names_)
    if len(set(names)) != lp.num_col_:
        return None  # the lines of a column do not stand together, and HiGHS makes two of it

    def side(value: float) -> float | None:
        return value if math.isfinite(value) else None

    kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
    columns = {
        name: (
            lp.col_cost_[j],
            side(lp.col_lower_[j]),
            side(lp.col_upper_[j]),
            kinds[j] == highspy.HighsVarType.kInteger,
        )
        for j, name in enumerate(lp.col_names_)
    }
    entries: list[dict[str, float]] = [{} for _ in range(lp.num_row_)]
    matrix = lp.a_matrix_
    by_column = matrix.format_ == highspy.MatrixFormat.kColwise
    for major in range(len(matrix.start_) - 1):
        for k in range(matrix.start_[major], matrix.start_[major + 1]):
            row, column = (matrix.index_[k], major) if by_column else (major, matrix.index_[k])
            if abs(matrix.value_[k]) > SMALL:
                entries[row][lp.col_names_[column]] = matrix.value_[k]
    rows = {
        name: (side(lp.row_lower_[i]), side(lp.row_upper_[i]), entries[i])
        for i, name in enumerate(lp.row_names_)
    }
    rows = {name: row for name, row in rows.items() if row[:2] != (None, None)}
    sense = "min" if lp.sense_ == highspy.ObjSense.kMinimize else "max"
    return {"sense": sense, "constant": lp.offset_, "columns": columns, "rows": rows}


def judged_schedule(instance: Json, schedule: Json) -> tuple[bool, Fraction | None]:
    """The second verifier's verdict."""
    found = judge(instance, schedule)
    return found.feasible, found.objectives[0] if found.objectives else None


def judged_packing(instance: Json, decision: Json) -> tuple[bool, Fraction | None]:
    """Every service on one GPU, whose memory holds all services on it."""
    data, gpu = instance["data"], decision["decision"]["gpu"]
    sizes, memory = data["gpu_gb"], data["memory_gb"]
    if len(gpu) != len(memory) or any(not 0 <= g < len(sizes) for g in gpu):
        return False, None
    for k, size in enumerate(sizes):
        if sum(Fraction(m) for m, g in zip(memory, gpu, strict=True) if g == k) > Fraction(size):
            return False, None
    return True, sum((Fraction(data["price_usd"][g]) for g in set(gpu)), Fraction(0))


def judged_point(instance: Json, decision: Json) -> tuple[bool, Fraction | None]:
    """Every row, side and integrality in fractions of the decimals that stand in the files."""

    def exact(value: Any) -> Fraction:
        return Fraction(value if isinstance(value, str) else repr(value))

    point = {name: exact(value) for name, value in decision["values"].items()}
    data = dense(instance)
    cost = exact(instance["constant"])
    for name, (price, low, high, whole) in data["columns"].items():
        x = point.get(name, Fraction(0))
        cost += exact(price) * x
        if whole and x.denominator != 1:
            return False, None
        if (low is not None and x < exact(low)) or (high is not None and x > exact(high)):
            return False, None
    for low, high, entries in data["rows"].values():
        total = sum((exact(a) * point.get(j, Fraction(0)) for j, a in entries.items()), Fraction(0))
        if (low is not None and total < exact(low)) or (high is not None and total > exact(high)):
            return False, None
    return True, cost
