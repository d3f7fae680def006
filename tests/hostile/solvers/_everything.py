"""Every feature there is, so that no instance is refused."""

from __future__ import annotations

from optbench.model.features import FEATURES

EVERYTHING = frozenset(FEATURES)
