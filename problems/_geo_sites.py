"""Sites of a geo-distributed data centre: GPUs, clocks, laws of time and power, latencies, prices.

The laws are those of ``optbench.power.dvfs``, for work that fills the GPUs. Clocks may exceed the
nominal one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, nearest
from optbench.model.builder import Mode, Model, Pool
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.power.dvfs import Law
from optbench.typed_values import check_keys, number

KINDS = ("training", "inference")
PAPER = Path(__file__).with_name("_geo_paper.json")
LAW = {"power": ("alpha_p", "beta_p", "gamma_p"), "latency": ("alpha_t", "beta_t", "gamma_t")}
HOURS = 24
# Upper limits of what a file may hold: of any coefficient, power, latency or price, and of a
# clock as a share of the nominal one. Both are far above real values.
MOST, MOST_CLOCK = 1e9, 10.0
TOP_KEYS = ("origin", "sites", "ingresses", "wan_latency_ms", "price_usd_per_kwh_by_hour")
# The last five keys occur in files of the CHSAC-AF simulator; they are ignored, since idle GPUs
# sleep.
SITE_KEYS = (
    "gpu_type",
    "gpu_count",
    "p_sleep_w",
    "freq_levels",
    "carbon_g_per_kwh",
    "price_usd_per_kwh_by_hour",
    "utc_offset_h",
    *KINDS,
    "p_idle_w",
    "p_peak_w",
    "dvfs_exponent",
    "default_freq",
    "power_gating",
)


@dataclass(frozen=True)
class Site:
    """GPUs of one type at one place.

    Carbon is one value, or 24 by hour. Prices are None where the prices of the network apply.
    """

    name: str
    count: int
    sleep_w: float
    clocks: tuple[float, ...]
    laws: dict[str, Law]
    carbon_g_per_kwh: tuple[float, ...] | None
    prices_usd_per_kwh: tuple[float, ...] | None
    utc_offset_h: float
    gpu_type: str = ""

    def modes(self, m: Model, pool: Pool, kind: str, max_gpus: int) -> list[Mode]:
        """All modes of a kind of work, ordered by number of GPUs and then by clock."""
        law = self.laws[kind]
        return [
            m.mode(
                {pool: n},
                law.time_per_unit_s(n, f),
                law.energy_per_unit_j(n, f),
                power_w=law.power_w(n, f),
                clock=f,
            )
            for n in range(1, min(max_gpus, self.count) + 1)
            for f in self.clocks
        ]


@dataclass(frozen=True)
class Network:
    """Sites, and the latency from each ingress to each site (infinite where there is no route)."""

    sites: tuple[Site, ...]
    ingresses: tuple[str, ...]
    latency_s: tuple[tuple[float, ...], ...]
    prices_usd_per_kwh: tuple[float, ...]


def tariffs_of(site: Site, net: Network) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Prices and carbon of a site: 24 values by hour, or one value for all hours.

    A site without carbon intensity gets the mean of the sites that have one.
    """
    known = [
        sum(each.carbon_g_per_kwh) / len(each.carbon_g_per_kwh)
        for each in net.sites
        if each.carbon_g_per_kwh
    ]
    carbon = site.carbon_g_per_kwh or (sum(known) / len(known) if known else 0.0,)
    return site.prices_usd_per_kwh or net.prices_usd_per_kwh or (0.0,), carbon


def network(path: Path = PAPER) -> Network:
    """Read a file of sites; an error names the key that is invalid."""
    where = "the shipped sites" if path == PAPER else shown(path)
    try:
        data = parse_json(read_text(path))
    except FileFormatError as error:
        raise FileFormatError(f"not a file of sites: {error}") from None
    if isinstance(data, dict):
        check_keys(data, TOP_KEYS, f"{where}: ")
    table = _part(data, "sites", dict, where)
    if not table:
        raise FileFormatError(f"{where}: sites is empty; name at least one")
    sites = tuple(_site(name, entry, f"{where}: site {name!r}") for name, entry in table.items())
    ingresses = tuple(str(each) for each in _part(data, "ingresses", list, where))
    routes = _part(data, "wan_latency_ms", dict, where)
    latency = []
    for ingress in ingresses:
        row = _part(routes, ingress, dict, f"{where}: wan_latency_ms")
        for name in row:
            if name not in table:
                what = f"wan_latency_ms.{ingress} leads to {name!r}, which is no site"
                raise FileFormatError(f"{where}: {what}; {nearest(name, list(table))}")
        latency.append(tuple(_route_latency_s(row, ingress, site.name, where) for site in sites))
    _check_routes(ingresses, [site.name for site in sites], latency, where)
    return Network(sites, ingresses, tuple(latency), _by_hour(data, where) or ())


def _check_routes(
    ingresses: tuple[str, ...], sites: list[str], latency: list[tuple[float, ...]], where: str
) -> None:
    """Check that ingresses are unique, each reaches a site, and each site is reached from one."""
    if not ingresses or len(set(ingresses)) < len(ingresses):
        raise FileFormatError(
            f"{where}: ingresses is {list(ingresses)!r:.80}; it must name at least one, each once"
        )
    for ingress, row in zip(ingresses, latency, strict=True):
        if not any(map(math.isfinite, row)):
            raise FileFormatError(
                f"{where}: wan_latency_ms.{ingress} leads to no site; give a latency to at least "
                "one"
            )
    for site, column in zip(sites, zip(*latency, strict=True), strict=True):
        if not any(map(math.isfinite, column)):
            raise FileFormatError(
                f"{where}: site {site!r} cannot be reached: no ingress has a wan_latency_ms to it"
            )


def _by_hour(data: dict[str, Any], where: str) -> tuple[float, ...] | None:
    """Prices of the 24 hours of a day, or None where the file has none."""
    if "price_usd_per_kwh_by_hour" not in data:
        return None
    return _hours(
        _part(data, "price_usd_per_kwh_by_hour", list, where), f"{where}: price_usd_per_kwh_by_hour"
    )


def _hours(values: list[Any], where: str) -> tuple[float, ...]:
    if len(values) != HOURS:
        raise FileFormatError(
            f"{where} has {len(values)} values; it must have {HOURS}, one per hour of a day"
        )
    return tuple(_amount(each, where) for each in values)


def _route_latency_s(row: dict[str, Any], ingress: str, site: str, where: str) -> float:
    """Latency from an ingress to a site in seconds, infinite where there is no route."""
    return (
        _amount(row[site], f"{where}: latency {ingress} to {site}") / 1e3
        if site in row
        else math.inf
    )


def _site(name: str, data: Any, where: str) -> Site:
    if isinstance(data, dict):
        check_keys(data, SITE_KEYS, f"{where}: ")
    count = _part(data, "gpu_count", int, where)
    if not 1 <= count <= MOST:
        raise FileFormatError(
            f"{where}: gpu_count is {count!r:.40}; a site has at least one GPU, and at most "
            f"{MOST:,.0f}"
        )
    clocks = tuple(
        _amount(f, f"{where}: freq_levels") for f in _part(data, "freq_levels", list, where)
    )
    if (
        not clocks
        or min(clocks) <= 0
        or max(clocks) > MOST_CLOCK
        or list(clocks) != sorted(set(clocks))
    ):
        raise FileFormatError(
            f"{where}: freq_levels is {list(clocks)}; it must be positive shares of the top "
            "clock, rising"
        )
    laws = {kind: _law(data[kind], f"{where}: {kind}") for kind in KINDS if kind in data}
    if not laws:
        raise FileFormatError(f"{where}: neither training nor inference has coefficients")
    carbon, at = data.get("carbon_g_per_kwh"), f"{where}: carbon_g_per_kwh"
    hours = f"a number of hours from -{HOURS} to {HOURS}"
    offset = number(data.get("utc_offset_h", 0), f"{where}: utc_offset_h", -HOURS, HOURS, hours)
    return Site(
        name,
        count,
        _amount(_part(data, "p_sleep_w", (int, float), where), f"{where}: p_sleep_w"),
        clocks,
        laws,
        None
        if carbon is None
        else _hours(carbon, at)
        if isinstance(carbon, list)
        else (_amount(carbon, at),),
        _by_hour(data, where),
        offset,
        str(data.get("gpu_type", "")),
    )


def _law(data: Any, where: str) -> Law:
    values = {
        name: _amount(
            _part(_part(data, group, dict, where), name, (int, float), f"{where}.{group}"),
            f"{where}.{group}.{name}",
        )
        for group, names in LAW.items()
        for name in names
    }
    law = Law(**values)
    if not law.time_per_unit_s(1, 1.0) > 0:
        raise FileFormatError(f"{where}.latency: alpha_t and beta_t are 0; work must take time")
    return law


def _part(data: Any, key: str, kind: Any, where: str) -> Any:
    if not isinstance(data, dict) or key not in data:
        raise FileFormatError(f"{where}: {key!r} is missing")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FileFormatError(
            f"{where}: {key} is {value!r:.60}; it must be {getattr(kind, '__name__', 'a number')}"
        )
    return value


def _amount(value: Any, where: str) -> float:
    return number(value, where, 0.0, MOST, f"a number from 0 to {MOST:,.0f}")
