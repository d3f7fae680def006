"""The shape of mixed-integer linear programmes: a decision is a point, checked in rationals."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optbench.errors import FileFormatError, ModelError, OptbenchError, clipped
from optbench.model.checks import Violation
from optbench.model.result import Bound, Infeasibility
from optbench.model.verify import Verdict
from optbench.shapes.milp.exact_point import Point, broken
from optbench.shapes.milp.infeasibility_proof import (
    crossed,
    is_farkas,
    prove_infeasible,
    prove_unbounded,
)
from optbench.shapes.milp.milp_json import read_program, write_program
from optbench.shapes.milp.program import Milp
from optbench.shapes.milp.relaxation_proof import prove, proven_value
from optbench.shapes.protocol.shape import Sense, Shape
from optbench.shapes.protocol.shaped_instance import ShapedInstance

DECISION = "optbench-decision"
SOURCE, METHOD = "lp_relaxation", "milp_relaxation"
# Sources and methods of proofs that there is no point; rows that a message names at most.
FARKAS, SIDES, MOST_ROWS = "lp_farkas", "crossed_sides", 5
RATIONAL = re.compile(r"-?\d+(?:/\d+|(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)")
# Digits of a dual, of which there is one per row; none that optbench computes has more.
MOST_DIGITS = 4000


@dataclass(frozen=True)
class Formulation:
    """A programme whose points stand for decisions."""

    program: Milp

    def encode(self, decision: Any) -> Point:
        """Return the point of a decision."""
        point: Point = decision
        return point

    def decode(self, point: Point) -> Any:
        """Return the decision of a point."""
        return point


class MilpShape(Shape):
    """A programme as it stands: MPS and LP files, or ``ob.shapes.milp``."""

    name = "milp"
    decision = "solution"
    capabilities = frozenset({"formulate"})

    def instance(self, program: Milp) -> ShapedInstance:
        return ShapedInstance(self, program.name, program)

    def formulate(self, instance: ShapedInstance) -> Formulation:
        return Formulation(instance.data)

    def describe(self, instance: ShapedInstance) -> str:
        program: Milp = instance.data
        whole = int(program.integer.sum())
        return f"{program.num_columns:,} columns ({whole:,} whole), {program.num_rows:,} rows"

    def label(self, instance: ShapedInstance, level: int = 0) -> str:
        return f"{instance.data.sense} objective"

    def sense(self, instance: ShapedInstance) -> Sense:
        sense: Sense = instance.data.sense
        return sense

    def verdict_of(self, instance: ShapedInstance, decision: Sequence[Fraction]) -> Verdict:
        program: Milp = instance.data
        if len(decision) != program.num_columns:
            words = f"{len(decision)} values for {program.num_columns} columns"
            return Verdict(False, (Violation("form", words),), (), {})
        found = broken(program, decision)
        value = float(program.objective_at(decision))
        metrics = {"objective": value}
        if found:
            wrong = tuple(Violation(b.constraint, b.what, float(b.amount)) for b in found)
            return Verdict(False, wrong, (), metrics)
        if not math.isfinite(value):
            words = "the objective is too large for a float"
            return Verdict(False, (Violation("finite", words),), (), metrics)
        return Verdict(True, (), (value,), metrics)

    def bounds(
        self, instance: ShapedInstance, method: str, time_limit_s: float, best: Any
    ) -> list[Bound]:
        program: Milp = instance.data
        duals = prove(program, time_limit_s)
        return [] if duals is None else [self.prove(instance, certificate_of(duals))]

    def prove(self, instance: ShapedInstance, certificate: str) -> Bound:
        program: Milp = instance.data
        value = proven_value(program, duals_of(certificate, program.num_rows))
        if value is None:
            raise OptbenchError("the certificate proves no finite bound of this programme")
        return Bound(outward(value, program.sense), SOURCE, "exact-lp", certificate=certificate)

    def certify_infeasible(
        self, instance: ShapedInstance, time_limit_s: float
    ) -> Infeasibility | None:
        program: Milp = instance.data
        found = crossed(program)
        if found is not None:
            words = f"the lower side of {found} is above its upper side"
            return Infeasibility(SIDES, "exact-lp", words, certificate_of((), SIDES))
        duals = prove_infeasible(program, time_limit_s)
        if duals is None:
            return None
        used = [program.rows[i] for i, y in enumerate(duals) if y]
        words = f"{len(used)} rows contradict each other within the bounds of their columns"
        named = f"{words}: {', '.join(map(clipped, used[:MOST_ROWS]))}"
        more = ", ..." if len(used) > MOST_ROWS else ""
        return Infeasibility(FARKAS, "exact-lp", named + more, certificate_of(duals, FARKAS))

    def is_proven_infeasible(self, instance: ShapedInstance, certificate: str) -> bool:
        """Whether a certificate of ``certify_infeasible`` holds of this programme."""
        program: Milp = instance.data
        if json.loads(certificate)["method"] == SIDES:
            return crossed(program) is not None
        return is_farkas(program, duals_of(certificate, program.num_rows, FARKAS))

    def certify_unbounded(
        self, instance: ShapedInstance, time_limit_s: float
    ) -> dict[str, Any] | None:
        program: Milp = instance.data
        found = prove_unbounded(program, time_limit_s)
        if found is None:
            return None
        return {
            "proof": "exact-lp",
            "point": _named(program, found[0]),
            "direction": _named(program, found[1]),
        }

    def labelled(self, instance: ShapedInstance, bound: Bound) -> Bound:
        return self.labelled_by_proof(instance, bound)

    def write(self, instance: ShapedInstance) -> dict[str, Any]:
        return write_program(instance.data, instance.name)

    def read(self, data: Mapping[str, Any]) -> ShapedInstance:
        return self.instance(read_program(data))

    def write_decision(self, instance: ShapedInstance, decision: Point) -> dict[str, Any]:
        """Values other than 0, as numbers where a float is exact and as fractions otherwise."""
        return {
            "format": DECISION,
            "version": 1,
            "shape": self.name,
            "instance_hash": instance.hash,
            "values": _named(instance.data, decision),
        }

    def read_decision(self, instance: ShapedInstance, data: Mapping[str, Any]) -> Point:
        values = data.get("values")
        if data.get("format") != DECISION or not isinstance(values, Mapping):
            raise FileFormatError(
                f"not an {DECISION} of shape {self.name!r} with an object `values`"
            )
        given = data.get("instance_hash")
        if given not in (None, instance.hash):
            raise FileFormatError(f"instance_hash: the file is of another instance ({given!r:.20})")
        out = [Fraction(0)] * instance.data.num_columns
        for name, value in values.items():
            try:
                out[instance.data.column_of(name)] = number_of(value)
            except (ModelError, ValueError, TypeError, ZeroDivisionError) as error:
                raise FileFormatError(f"values: {clipped(name)!r}: {error}") from None
        return tuple(out)


def outward(value: Fraction, sense: Sense) -> float:
    """Return the nearest float on the side on which it remains a bound."""
    nearest = float(value)
    if sense == "min" and Fraction(nearest) > value:
        return math.nextafter(nearest, -math.inf)
    if sense == "max" and Fraction(nearest) < value:
        return math.nextafter(nearest, math.inf)
    return nearest


def _named(program: Milp, point: Point) -> dict[str, int | float | str]:
    """Return the values other than 0 by column, as numbers or fractions."""
    named = zip(program.columns, point, strict=True)
    return {name: plain_number(value) for name, value in named if value}


def certificate_of(duals: Sequence[Fraction], method: str = METHOD) -> str:
    text = ",".join(map(str, duals)).encode()
    packed = base64.b64encode(zlib.compress(text, 6)).decode()
    return json.dumps({"duals": packed, "method": method}, separators=(",", ":"))


def duals_of(certificate: str, num_rows: int, method: str = METHOD) -> tuple[Fraction, ...]:
    """Read duals from an untrusted text."""
    try:
        data = json.loads(certificate)
        unpack = zlib.decompressobj()
        most = num_rows * (MOST_DIGITS + 1) + 1
        text = unpack.decompress(base64.b64decode(data["duals"], validate=True), most)
        words = text.decode("ascii").split(",") if text else []
        if data["method"] != method or len(words) != num_rows or len(text) == most:
            raise ValueError(f"{len(words)} duals for {num_rows} rows")
        return tuple(_rational(word) for word in words)
    except (ValueError, KeyError, TypeError, ZeroDivisionError, zlib.error) as error:
        raise OptbenchError(f"the certificate cannot be read ({error})") from None


def plain_number(value: Fraction) -> int | float | str:
    if value.denominator == 1 and abs(value.numerator) < 2**53:
        return value.numerator
    number = float(value)
    return number if Fraction(repr(number)) == value else str(value)


def number_of(value: Any) -> Fraction:
    """Return a number of a file: a JSON number, or a text such as ``1/3`` or ``0.1``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"{value!r:.40} is not a number")
    return _rational(repr(value) if isinstance(value, float) else str(value))


def _rational(text: str) -> Fraction:
    """Read a rational or a decimal; an exponent is bounded, since it is written out in digits."""
    if len(text) > 2 * MOST_DIGITS or RATIONAL.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!r} is not a number")
    return Fraction(text)


MILPS = MilpShape()
