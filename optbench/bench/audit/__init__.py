"""From a cluster's own log to the certified saving potential and the policy to take."""

from optbench.bench.audit.log import AuditOptions
from optbench.bench.audit.ranges import Ranges
from optbench.bench.audit.run import Audit, Record, audit

__all__ = ["Audit", "AuditOptions", "Ranges", "Record", "audit"]
