"""Public data sets: a registry with checksums, found in $OPTBENCH_DATA or fetched into a cache."""

from optbench.data.fetch import fetch, select, unfetchable
from optbench.data.registry import (
    DataError,
    DataFile,
    DataSet,
    best_known,
    cache_root,
    data_path,
    data_root,
    data_sets,
    find,
    intact,
    locate,
)

__all__ = [
    "DataError", "DataFile", "DataSet", "best_known", "cache_root", "data_path", "data_root", "data_sets", "fetch", "find",
    "intact", "locate", "select", "unfetchable",
]
