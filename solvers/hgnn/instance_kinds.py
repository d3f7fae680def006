"""Whether the work of an instance is all there when it begins."""

from __future__ import annotations

from optbench.model.instance import Instance


def has_arrivals(instance: Instance) -> bool:
    """Whether some task arrives later than the first."""
    release = instance.tasks.release
    return bool((release != release[:1]).any())
