"""MLflow as a view of the local store: runs are described here without it, and sent by ``Tracking``, which alone imports it."""

from optbench.bench.track.runs import SyncReport, TrackedRun, TrackingError
from optbench.bench.track.tracking import Tracking

__all__ = ["SyncReport", "TrackedRun", "Tracking", "TrackingError"]
