"""Jobs arrive at the ingresses of a wide-area network and are routed to sites with GPUs.

A policy chooses the site, the number of GPUs and the clock of each job. A job of kind k with u
units on n GPUs of site d at clock f takes u T_dk(n, f) seconds and draws P_dk(n, f) watts; a GPU
that is not busy sleeps. The job reaches the site after the ingress latency and cannot start
earlier. Modes are all (site, n, f).

By default the instance is *open*: it is observed from the first arrival to the horizon, and the
objective is the energy per unit of completed work. With ``drain`` all work must be completed, and
total energy (or cost, or carbon) is minimised, so that no policy gains by leaving work undone.
The defaults are the setting of the CHSAC-AF paper: 8 sites with 1,488 GPUs, 8 ingresses, 0.02
training jobs a second at each, lognormal sizes around 50,000 units, one week. The coefficients
are approximations by the paper's authors (``origin`` in the file). Where the file has no carbon
intensity, ``carbon`` uses the mean of the sites that have one. Prices and carbon are given by the
hour of the day, in one time zone or, with ``local_hours``, in each site's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from optbench.arguments import require
from optbench.errors import FileFormatError
from optbench.model.builder import Model, Pool
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.streams import Outages, outages_in_seconds, with_stream
from optbench.plugins.protocol import Problem
from optbench.units import DAY_S, HOUR_S

from ._geo_arrivals import Arrivals, Sizes, draw_arrivals, peak_rate_factor
from ._geo_outages import bursts_of, outages_of
from ._geo_sites import HOURS, KINDS, PAPER, Network, Site, network, tariffs_of

if TYPE_CHECKING:
    from optbench.formats.imported import Import

NAME = "geo_dc"
DRAIN_HOURS = 25
# At most a century, and at most this many arrivals (computed with bursts and the sine at their
# peak all the time), which need about 40 GB of memory.
MOST_DAYS, MOST_ARRIVALS = 36_525.0, 100_000_000
AIMS = {"energy": "energy_j", "cost": "cost_usd", "carbon": "carbon_g"}


@dataclass(frozen=True)
class GeoDc(Problem):
    """Geo-distributed data centre: route arriving jobs to sites, choose GPUs and clocks, least
    energy per unit of work.

    ``arrivals`` is a recorded stream: a file, or one of a public data set. It is a CSV (ingress,
    arrival_s, size_units or duration_s; optionally gpus, job, type, site), a Gavel trace, or a list
    of Alibaba's pods. It is read from ``begin_days`` on, ``pace`` times as fast; its GPUs are taken
    to be those of the site ``reference`` (default: the first). Without a record, training jobs
    arrive at ``rate`` per second and ingress, inference jobs at ``inference``; ``burst`` multiplies
    both rates for a time: ``3@36h+6h``. ``sites`` is a file like the shipped one, ``only`` selects
    some of its sites, ``shrink`` is a factor on their GPUs. ``jobs`` keeps only the first jobs.
    With ``drain`` all work must be completed; ``sojourn_s`` then limits the mean time in the
    system. ``outage`` and ``maintenance`` take sites away for a time (``us-west@36h+12h``,
    ``largest@2d+6h``); policies know maintenance beforehand. ``deadline_s`` is the relative
    deadline of inference jobs, and ``cap_w`` limits the power of all sites together.
    """

    days: float = 7.0
    rate: float = 0.02
    inference: float = 0.0
    inference_units: float = 1.0
    burst: tuple[str, ...] = ()
    arrivals: str | None = None
    begin_days: float = 0.0
    pace: float = 1.0
    reference: str | None = None
    sites: str | None = None
    only: tuple[str, ...] = ()
    shrink: float = 1.0
    max_gpus: int = 8
    sizes: Sizes = "lognormal"
    jobs: int | None = None
    drain: bool = False
    minimize: Literal["energy", "cost", "carbon"] = "energy"
    local_hours: bool = False
    sojourn_s: float | None = None
    deadline_s: float | None = None
    cap_w: float | None = None
    preemptive: bool = False
    outage: tuple[str, ...] = ()
    maintenance: tuple[str, ...] = ()
    tick_s: float | None = None

    def __post_init__(self) -> None:
        for field in ("days", "shrink", "inference_units", "pace"):
            self._require(0 < getattr(self, field) < np.inf, field, "positive")
        for field in ("rate", "inference"):
            holds = 0 <= getattr(self, field) < np.inf
            self._require(holds, field, "at least 0, per second and ingress")
        some = self.arrivals is not None or self.rate + self.inference > 0
        self._require(some, "rate", "above 0, or inference is")
        self._require(0 <= self.begin_days < np.inf, "begin_days", "at least 0")
        for field, default in (("begin_days", 0.0), ("pace", 1.0), ("reference", None)):
            holds = getattr(self, field) == default or self.arrivals is not None
            self._require(holds, field, f"{default} without recorded arrivals")
        free = not self.burst or self.arrivals is None
        self._require(free, "burst", "empty with arrivals, which are as they are")
        self._require(self.max_gpus >= 1, "max_gpus", "at least 1")
        known = self.sizes in ("lognormal", "exponential")
        self._require(known, "sizes", "lognormal or exponential")
        self._require(self.jobs is None or self.jobs >= 1, "jobs", "none, or at least 1")
        self._require(self.minimize in AIMS, "minimize", f"one of {', '.join(AIMS)}")
        bounded = self.minimize == "energy" or self.drain
        self._require(bounded, "minimize", "energy, unless drain=yes")
        for field in ("sojourn_s", "tick_s"):
            value = getattr(self, field)
            holds = value is None or (0 < value < np.inf and self.drain)
            self._require(holds, field, "none, or positive with drain=yes")
        for field in ("deadline_s", "cap_w"):
            value = getattr(self, field)
            self._require(value is None or 0 < value < np.inf, field, "none, or positive")
        self._require(self.days <= MOST_DAYS, "days", f"{MOST_DAYS:g} at most")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    @property
    def horizon_s(self) -> float:
        return self.days * DAY_S

    def instance(self, seed: int = 0) -> Instance:
        net, _ = self._networks()
        if self.arrivals is None:
            return self._made(net, self._drawn(net, np.random.default_rng(seed)), seed)
        return self.imported(seed).instance  # type: ignore[union-attr]  # there is a record

    def imported(self, seed: int = 0) -> Import | None:
        if self.arrivals is None:
            return None
        from optbench.formats.imported import Import, ImportFindings

        from ._geo_traces import (
            TraceRecord,
            empty_window_message,
            local_file,
            read_record,
            select_window,
            summary,
        )

        (net, whole), findings = self._networks(), ImportFindings()
        names = tuple(site.name for site in whole.sites)
        require(
            self.reference in (None, *names),
            NAME,
            "reference",
            self.reference,
            f"a site: {', '.join(names)}",
        )
        reference = next(
            (site for site in whole.sites if site.name == self.reference), whole.sites[0]
        )
        path = local_file(self.arrivals)
        all_work, kind, rows = read_record(path, TraceRecord(net, names, reference, seed), findings)
        begin_s = self.begin_days * DAY_S
        work = select_window(all_work, begin_s, self.pace, self.horizon_s, self.jobs, findings)
        if len(work.time_s) == 0:
            raise FileFormatError(
                empty_window_message(str(path), all_work, begin_s, self.pace * self.horizon_s)
            )
        report = findings.report(kind, summary(net, work, rows, self.horizon_s))
        return Import(self._made(net, work, seed), None, report)

    def _drawn(self, net: Network, rng: np.random.Generator) -> Arrivals:
        bursts = bursts_of(NAME, "burst", self.burst)
        expected = (
            self.horizon_s
            * len(net.ingresses)
            * (self.rate + self.inference)
            * peak_rate_factor(bursts)
        )
        field = "rate" if self.rate >= self.inference else "inference"
        weaker = ", or bursts weaker" if bursts else ""
        few = (
            f"lower, or days fewer{weaker}: {expected:.3g} arrivals are more than {MOST_ARRIVALS:,}"
        )
        require(expected <= MOST_ARRIVALS, NAME, field, getattr(self, field), few)
        work = draw_arrivals(
            rng, len(net.ingresses), self.horizon_s, self.rate, self.inference, self.sizes, bursts
        )
        work = replace(
            work, units=np.where(work.kind == 1, work.units * self.inference_units, work.units)
        )
        require(
            len(work.time_s) > 0,
            NAME,
            "days",
            self.days,
            "long enough for one arrival (or raise rate)",
        )
        return work.rows(np.arange(len(work.time_s))[: self.jobs])

    def _made(self, net: Network, work: Arrivals, seed: int) -> Instance:
        preemptive = self.preemptive or bool(self.outage or self.maintenance)
        m = Model(
            f"geo_dc-{len(work.time_s)}-{seed}",
            tick_s="auto" if self.tick_s is None else self.tick_s,
            horizon_s=None if self.drain else self.horizon_s,
            preemptive=preemptive,
        )
        pools = [self._pool(m, site, net) for site in net.sites]
        self._work(m, net, pools, work)
        m.minimize(**{AIMS[self.minimize]: 1.0})
        if self.cap_w is not None:
            m.limit(power_w=self.cap_w)
        if self.sojourn_s is not None:
            m.limit(flow_time_s=self.sojourn_s * len(work.time_s))
        order = np.concatenate([np.flatnonzero(work.kind == k) for k in range(len(KINDS))])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        built = m.build()
        # Tasks were declared kind by kind; they stand in the order of arrival.
        tasks = replace(
            built.tasks,
            **{
                name: getattr(built.tasks, name)[back]
                for name in (
                    "kind",
                    "units",
                    "release",
                    "deadline",
                    "deadline_hard",
                    "weight",
                    "memory_gb",
                )
            },
            names=work.names,
        )
        kinds = tuple(kind for k, kind in enumerate(KINDS) if (work.kind == k).any())
        made = with_stream(
            replace(built, tasks=tasks, modes=replace(built.modes, kind_names=kinds), problem=NAME),
            ingress=work.ingress,
            latency_s=np.array(net.latency_s),
            sent_to=work.site,
            outages=self._outages(net, built),
            opens=None if self.drain else int(tasks.release.min()),
            ingress_names=net.ingresses,
        )
        return made if self.drain else made.with_objective(Objective.weighted({"j_per_unit": 1.0}))

    def _networks(self) -> tuple[Network, Network]:
        """The network of the sites that are kept, and the network of all sites."""
        net = network(PAPER if self.sites is None else Path(self.sites))
        names = [site.name for site in net.sites]
        for name in self.only:
            require(name in names, NAME, "only", name, f"a site: {', '.join(names)}")
        keep = [k for k, name in enumerate(names) if not self.only or name in self.only]
        sites = tuple(
            replace(net.sites[k], count=max(1, round(net.sites[k].count * self.shrink)))
            for k in keep
        )
        return replace(
            net, sites=sites, latency_s=tuple(tuple(row[k] for k in keep) for row in net.latency_s)
        ), net

    def _pool(self, m: Model, site: Site, net: Network) -> Pool:
        place = m.place(site.name)
        if self.minimize != "energy":
            # After the last arrival the tariffs go on for some hours, in which work can wait for
            # lower prices.
            hours = np.arange(int(np.ceil(self.days * HOURS)) + DRAIN_HOURS)
            hours += int(site.utc_offset_h) if self.local_hours else 0
            price, carbon = (
                np.resize(values, HOURS)[hours % HOURS].tolist() for values in tariffs_of(site, net)
            )
            m.tariff(price_usd_per_kwh=price, carbon_g_per_kwh=carbon, every_s=HOUR_S, at=place)
        return m.pool(site.name, site.count, at=place, sleep_w=site.sleep_w, sleeps=True)

    def _work(self, m: Model, net: Network, pools: list[Pool], work: Arrivals) -> None:
        """Declare training tasks, then inference tasks, which have the larger weight."""
        for k, kind in enumerate(KINDS):
            rows = np.flatnonzero(work.kind == k)
            if len(rows) == 0:
                continue
            modes = [
                mode
                for site, pool in zip(net.sites, pools, strict=True)
                if kind in site.laws
                for mode in site.modes(m, pool, kind, self.max_gpus)
            ]
            due = (
                work.time_s[rows] + self.deadline_s
                if kind == "inference" and self.deadline_s is not None
                else None
            )
            m.tasks(
                work.units[rows], kind=m.kind(modes=modes), release_s=work.time_s[rows],
                deadline_s=due, hard=None if due is None else False,
            )  # fmt: skip

    def _outages(self, net: Network, built: Instance) -> Outages:
        sites = [(site.name, site.count) for site in net.sites]
        kinds = (("outage", self.outage, False), ("maintenance", self.maintenance, True))
        return outages_in_seconds(built, *outages_of(NAME, sites, kinds))
