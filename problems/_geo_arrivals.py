"""Work that comes in at the ingresses of a geo-distributed data centre: drawn, or read from a record."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from optbench.errors import FileFormatError, nearest
from optbench.model.instance import Floats, Ints

# The paper's sizes: training lognormal around 50,000 units, inference Pareto from one unit on.
MEDIAN_UNITS, SIGMA, LEAST_UNITS = 50_000.0, 0.4, 0.1
PARETO_SHAPE = 1.8
# Inference traffic goes up and down by this share in this time.
SWING, PERIOD_S = 0.6, 300.0
COLUMNS = ("ingress", "arrival_s", "size_units")
MOST_SHOWN = 3

Sizes = Literal["lognormal", "exponential"]


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows in order of arrival. ``kind`` 0 is training, 1 inference; ``site`` is -1 where nobody says where a job goes."""

    time_s: Floats
    ingress: Ints
    kind: Ints
    units: Floats
    site: Ints
    names: tuple[str, ...] | None = None

    def sorted(self) -> Arrivals:
        return self.rows(np.argsort(self.time_s, kind="stable"))

    def rows(self, which: Ints) -> Arrivals:
        """These rows, in this order."""
        names = None if self.names is None else tuple(self.names[i] for i in which.tolist())
        return Arrivals(
            self.time_s[which], self.ingress[which], self.kind[which], self.units[which], self.site[which], names
        )


def drawn(
    rng: np.random.Generator, ingresses: int, end_s: float, rate: float, inference_rate: float, sizes: Sizes = "lognormal"
) -> Arrivals:
    """Poisson training and sinusoidal inference at each ingress, up to a time."""
    rows = []
    for g in range(ingresses):
        t = _poisson(rng, rate, end_s)
        if sizes == "lognormal":
            units = np.maximum(LEAST_UNITS, rng.lognormal(np.log(MEDIAN_UNITS), SIGMA, len(t)))
        else:
            units = rng.exponential(MEDIAN_UNITS, len(t))
        rows.append((t, g, 0, units))
        t = _poisson(rng, inference_rate * (1 + SWING), end_s)
        kept = rng.random(len(t)) * (1 + SWING) < 1 + SWING * np.sin(2 * np.pi * t / PERIOD_S)  # thinning
        t = t[kept]
        rows.append((t, g, 1, (1.0 - rng.random(len(t))) ** (-1.0 / PARETO_SHAPE)))
    time = np.concatenate([row[0] for row in rows])
    ingress = np.concatenate([np.full(len(row[0]), row[1]) for row in rows])
    kind = np.concatenate([np.full(len(row[0]), row[2]) for row in rows])
    units = np.concatenate([row[3] for row in rows])
    return Arrivals(time, ingress, kind, units, np.full(len(time), -1)).sorted()


def _poisson(rng: np.random.Generator, rate: float, end_s: float) -> Floats:
    return np.sort(rng.random(rng.poisson(rate * end_s))) * end_s


def recorded(path: Path, ingresses: tuple[str, ...], sites: tuple[str, ...]) -> Arrivals:
    """A CSV file, plain or gzip: ingress, arrival_s, size_units; where they stand there, job, type and site too."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: cannot be read as text ({error})") from None
    rows = list(csv.reader(io.StringIO(text)))
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        needs = f"the first line must name {', '.join(COLUMNS)}, and may name job, type, site"
        raise FileFormatError(f"{path}: column {missing[0]!r} is missing; {needs}")
    rows = rows[1:]
    if not rows:
        raise FileFormatError(f"{path}: no arrival in it")
    width = len(header)
    short = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if short is not None:
        raise FileFormatError(f"{path}, line {short + 2}: {len(rows[short])} fields, the header has {width}")
    column = {name: [row[k] for row in rows] for k, name in enumerate(header)}
    time, units = (_numbers(path, column[name], name) for name in ("arrival_s", "size_units"))
    for name, values, ok in (("arrival_s", time, time >= 0), ("size_units", units, units > 0)):
        if not ok.all():
            row = int(np.flatnonzero(~ok)[0])
            allowed = "positive" if name == "size_units" else "at least 0"
            raise FileFormatError(f"{path}, line {row + 2}: {name} is {values[row]}; it must be {allowed}")
    back = np.flatnonzero(np.diff(time) < 0)
    if len(back):
        row = int(back[0]) + 1
        rule = "arrivals must stand in order of time"
        raise FileFormatError(f"{path}, line {row + 2}: arrival_s is {time[row]}, after {time[row - 1]}; {rule}")
    nothing = np.zeros(len(rows), dtype=np.int64)
    kinds = _known(path, column["type"], "type", ("training", "inference")) if "type" in column else nothing
    site = _known(path, column["site"], "site", sites, empty=True) if "site" in column else np.full(len(rows), -1)
    names = tuple(column["job"]) if "job" in column and len(set(column["job"])) == len(rows) else None
    return Arrivals(time, _known(path, column["ingress"], "ingress", ingresses), kinds, units, site, names)


def _numbers(path: Path, values: list[str], name: str) -> Floats:
    try:
        out = np.array(values, dtype=float)
    except ValueError:
        row = next(i for i, value in enumerate(values) if not _is_number(value))
        raise FileFormatError(f"{path}, line {row + 2}: {name} is {values[row]!r}; it must be a number") from None
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out))[0])
        raise FileFormatError(f"{path}, line {row + 2}: {name} is {values[row]!r}; it must be finite")
    return out


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _known(path: Path, values: list[str], name: str, allowed: tuple[str, ...], *, empty: bool = False) -> Ints:
    index = {each: k for k, each in enumerate(allowed)} | ({"": -1} if empty else {})
    unknown = next((i for i, value in enumerate(values) if value not in index), None)
    if unknown is not None:
        raise FileFormatError(f"{path}, line {unknown + 2}: {name} is {values[unknown]!r}; {nearest(values[unknown], allowed)}")
    return np.array([index[value] for value in values], dtype=np.int64)
