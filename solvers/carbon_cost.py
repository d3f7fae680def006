"""``carbon_cost`` of the CHSAC-AF paper's simulator: uniform routing; devices and clock of least
cost per unit at the site.

The cost of a mode is its energy times the price of the hour at its site. That price is one for all
modes of a site, so that it picks what ``joint_nf`` picks at any price; so does the carbon intensity
by which the simulator picks for queued jobs. Routing by prices and carbon is ``cost_route``.
"""

from __future__ import annotations

from dataclasses import dataclass

from .joint_nf import JointNf


@dataclass(frozen=True)
class CarbonCost(JointNf):
    """Devices and clock of least electricity cost at a site chosen at random, as the paper's
    authors coded it.
    """
