"""Device profiles: nameplate values and DVFS laws, from shipped or the user's JSON files.

A file holds ``name``, the watts ``idle_w``, ``sleep_w``, ``tdp_w`` (of the board) of one device,
its ``memory_gb``, its ``clocks`` (fractions of the top clock), a law for each kind of work under
``laws``, and under ``sources`` a note of origin for each of these. A file of `optbench gpu
calibrate` also says under ``measurement``, for each kind of work, how and on what it was measured.
Shipped files are in ``power/data``; a law in them may not exceed the board power. In a user's file
this is a warning and a flag (``Profile.flags``).
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.power.dvfs import Law
from optbench.typed_values import check_keys, number

# Each device has one file; a short name stands for the variant that our studies use.
ALIASES = {"A100": "A100-PCIe", "H100": "H100-SXM", "V100": "V100-PCIe"}

# Excess from rounding coefficients that were fitted to the board power is ignored.
ROUNDING = 1e-6

_NUMBERS = ("idle_w", "sleep_w", "tdp_w", "memory_gb")
_REQUIRED = ("name", *_NUMBERS, "clocks", "laws", "sources")
# Optional key: the figures from which the laws were derived.
_OPTIONAL = ("peak_tflops", "bandwidth_gb_s")
# Optional key: the provenance of measured laws.
_MEASUREMENT = "measurement"
_COEFFICIENTS = tuple(column.name for column in fields(Law) if column.default is MISSING)
_MORE_COEFFICIENTS = tuple(column.name for column in fields(Law) if column.default is not MISSING)


class BoardPowerWarning(UserWarning):
    """The law of a profile exceeds the board power."""


@dataclass(frozen=True)
class Overdraw:
    """A kind of work whose power exceeds ``board_w`` from ``from_clock`` on.

    Its highest power is ``watts``, at ``clock``."""

    profile: str
    kind: str
    clock: float
    watts: float
    board_w: float
    from_clock: float

    def __str__(self) -> str:
        since = (
            ""
            if self.from_clock == self.clock
            else f" (exceeded from clock {self.from_clock:g} on)"
        )
        draws = f"{self.kind} draws {self.watts:.4g} W at clock {self.clock:g}"
        return f"profile {self.profile!r}: {draws}, the board has {self.board_w:g} W{since}"


@dataclass(frozen=True)
class Profile:
    """One kind of device: powers in watts per device, clocks, and a law for each kind of work.

    Clocks ascend and are fractions of the top clock."""

    name: str
    idle_w: float
    sleep_w: float
    tdp_w: float
    memory_gb: float
    clocks: tuple[float, ...]
    laws: Mapping[str, Law]
    sources: Mapping[str, str]
    peak_tflops: float | None = None
    bandwidth_gb_s: float | None = None
    measurement: Mapping[str, Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self.laws))

    @property
    def flags(self) -> tuple[Overdraw, ...]:
        """Kinds of work whose law exceeds the board power."""
        return board_power(self)

    def law(self, kind: str) -> Law:
        """The law of one kind of work."""
        try:
            return self.laws[kind]
        except KeyError:
            raise UnknownNameError(
                f"kind of work of profile {self.name!r}:", kind, self.laws
            ) from None

    def time_per_unit_s(
        self, kind: str, gpus: int, clock: float, size_gflop: float | None = None
    ) -> float:
        """Seconds per unit of work on ``gpus`` devices together."""
        check_operating_point(gpus, clock)
        return self.law(kind).time_per_unit_s(gpus, clock, size_gflop)

    def power_w(self, kind: str, gpus: int, clock: float, size_gflop: float | None = None) -> float:
        """Power of all ``gpus`` devices while they work."""
        check_operating_point(gpus, clock)
        return self.law(kind).power_w(gpus, clock, size_gflop)

    def energy_per_unit_j(
        self, kind: str, gpus: int, clock: float, size_gflop: float | None = None
    ) -> float:
        """Energy of all ``gpus`` devices per unit of work."""
        check_operating_point(gpus, clock)
        return self.law(kind).energy_per_unit_j(gpus, clock, size_gflop)


def check_operating_point(gpus: int, clock: float) -> None:
    """Refuse a GPU count or a clock that no profile covers."""
    if gpus < 1 or gpus != int(gpus):
        raise ParameterError(f"gpus is {gpus!r}; it must be a whole number, at least 1")
    if not (math.isfinite(clock) and 0 < clock <= 1):
        raise ParameterError(
            f"clock is {clock!r}; it must be a fraction of the top clock, above 0 and at most 1"
        )


def profile_names() -> tuple[str, ...]:
    """Names of the shipped profiles, without aliases."""
    return tuple(
        sorted(
            entry.name.removesuffix(".json")
            for entry in _shipped().iterdir()
            if entry.name.endswith(".json")
        )
    )


def profile(name_or_path: str | Path) -> Profile:
    """A shipped profile by name or alias, or one from a JSON file.

    A file whose law exceeds the board power causes a warning."""
    name = str(name_or_path)
    shipped = ALIASES.get(name, name)
    if shipped in profile_names():
        where = f"shipped profile {shipped}"
        found = parse_profile((_shipped() / f"{shipped}.json").read_text(encoding="utf-8"), where)
        for flag in found.flags:
            raise FileFormatError(f"{where}: {flag}")
        return found
    path = Path(name_or_path)
    if path.is_file():
        try:
            own = parse_profile(path.read_text(encoding="utf-8"), name)
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"{name}: not a text file ({error.reason} at byte {error.start}); a profile is "
                "UTF-8 JSON"
            ) from None
        warn_of_overdraw(own, name)
        return own
    if name.endswith(".json"):
        raise FileFormatError(
            f"{name}: no such profile file; shipped profiles: {', '.join(profile_names())}"
        )
    raise UnknownNameError("profile", name, (*profile_names(), *ALIASES))


def parse_profile(text: str, where: str) -> Profile:
    """Parse the text of a JSON file; ``where`` names the file in errors."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise FileFormatError(f"{where}: not JSON: {error}") from None
    table = _table(data, where, _REQUIRED, (*_OPTIONAL, _MEASUREMENT))
    if not isinstance(table["name"], str) or not table["name"]:
        raise FileFormatError(f"{where}: name is {table['name']!r}; it must be a non-empty string")
    idle_w, sleep_w, tdp_w, memory_gb = (_number(table[key], f"{where}: {key}") for key in _NUMBERS)
    if not sleep_w <= idle_w <= tdp_w:
        raise FileFormatError(
            f"{where}: sleep_w {sleep_w:g}, idle_w {idle_w:g}, tdp_w {tdp_w:g} must ascend in "
            "this order"
        )
    clocks = _clocks(table["clocks"], where)
    laws = _laws(table["laws"], where)
    peak_tflops, bandwidth_gb_s = (
        _number(table[key], f"{where}: {key}") if key in table else None for key in _OPTIONAL
    )
    sources = table["sources"]
    if not isinstance(sources, dict) or not all(isinstance(note, str) for note in sources.values()):
        raise FileFormatError(
            f"{where}: sources is {sources!r}; it must give a note (a string) for each field"
        )
    measurement = table.get(_MEASUREMENT)
    if measurement is not None and not (
        isinstance(measurement, dict)
        and all(kind in laws and isinstance(row, dict) for kind, row in measurement.items())
    ):
        raise FileFormatError(
            f"{where}: measurement is {measurement!r:.60}; it must hold an object for kinds of "
            f"work of this profile: {', '.join(sorted(laws))}"
        )
    return Profile(
        table["name"],
        idle_w,
        sleep_w,
        tdp_w,
        memory_gb,
        clocks,
        laws,
        sources,
        peak_tflops,
        bandwidth_gb_s,
        measurement,
    )


def _laws(value: Any, where: str) -> dict[str, Law]:
    if not isinstance(value, dict) or not value:
        raise FileFormatError(
            f"{where}: laws is {value!r}; it must hold at least one kind, for example 'training'"
        )
    laws = {}
    for kind, row in value.items():
        place = f"{where}: laws.{kind}"
        row = _table(row, place, _COEFFICIENTS, _MORE_COEFFICIENTS)
        law = Law(**{key: _number(given, f"{place}.{key}") for key, given in row.items()})
        if law.alpha_t + law.beta_t <= 0:
            raise FileFormatError(f"{place}: alpha_t + beta_t is 0; a unit of work must take time")
        laws[kind] = law
    return laws


def _clocks(value: Any, where: str) -> tuple[float, ...]:
    if not isinstance(value, list) or not value:
        raise FileFormatError(
            f"{where}: clocks is {value!r}; it must be a list of at least one fraction of the "
            "top clock"
        )
    clocks = tuple(_number(clock, f"{where}: clocks") for clock in value)
    if clocks[0] <= 0 or clocks[-1] > 1 or any(a >= b for a, b in pairwise(clocks)):
        raise FileFormatError(f"{where}: clocks are {list(clocks)}; they must ascend within (0, 1]")
    return clocks


def _table(
    value: Any, where: str, required: tuple[str, ...], optional: tuple[str, ...]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileFormatError(f"{where}: expected a JSON object, found {type(value).__name__}")
    check_keys(value, (*required, *optional), f"{where}: ")
    for key in required:
        if key not in value:
            raise FileFormatError(
                f"{where}: key {key!r} is missing; required: {', '.join(required)}"
            )
    return value


def _number(value: Any, where: str) -> float:
    return number(value, where, 0.0, allowed="a finite number, at least 0")


def _shipped() -> Any:
    return resources.files("optbench.power") / "data"


def board_power(profile: Profile) -> tuple[Overdraw, ...]:
    """Kinds of work whose law exceeds the board power at some clock of the profile."""
    found = []
    for kind in profile.kinds:
        watts = {clock: profile.power_w(kind, 1, clock) for clock in profile.clocks}
        over = [clock for clock in profile.clocks if watts[clock] > profile.tdp_w * (1 + ROUNDING)]
        if over:
            worst = max(over, key=lambda clock: watts[clock])
            found.append(Overdraw(profile.name, kind, worst, watts[worst], profile.tdp_w, over[0]))
    return tuple(found)


def warn_of_overdraw(profile: Profile, where: str, stacklevel: int = 3) -> None:
    """Issue a BoardPowerWarning for each kind of work that exceeds the board power.

    ``where`` names the place at which the profile is used."""
    for flag in board_power(profile):
        warnings.warn(f"{where}: {flag}", BoardPowerWarning, stacklevel=stacklevel)
