"""Public data sets: a registry with checksums, found in $OPTBENCH_DATA or fetched into a cache."""
