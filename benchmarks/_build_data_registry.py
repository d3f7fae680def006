"""Rebuild optbench/data/registry.json from the MANIFEST.csv of a data folder: python
benchmarks/_build_data_registry.py DATA.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "optbench" / "data" / "registry.json"
SUMMARIES = {
    "LICENSES": "licence texts of the sets",
    "jobshop": "42 job shops with best known bounds",
    "flexible-jobshop": "44 flexible job shops with best known bounds",
    "rcpsp": "85 projects of PSPLIB (j30, j60, j90, j120) with best known bounds",
    "gavel": "throughputs of training jobs on three GPU types, and three traces",
    "alibaba-gpu-v2023": "nodes and pods of a heterogeneous GPU cluster with sharing",
    "philly": "run times of 83,154 jobs of the Philly cluster",
    "planetoid": "Cora and CiteSeer citation graphs",
    "chsac-af": "coefficients of eight GPU data centres, and a week of recorded arrivals",
}
# Files with a README of their own beside them and no row in the manifest: set, path, where they
# come from.
BESIDE = (
    (
        "chsac-af",
        "chsac-af/reference/arrivals.csv.gz",
        "filrg/distributed_cluster_GPUs, commit 9e78013: written by its simulator, seed 123",
    ),
)


def registry(manifest: Path) -> dict[str, Any]:
    """Sources by key, and per set its files as [path, bytes, sha256, source key or null, path in
    the source].
    """
    sources: dict[str, dict[str, str]] = {}
    sets: dict[str, dict[str, Any]] = {
        name: {"summary": text, "licence": "", "files": []} for name, text in SUMMARIES.items()
    }
    with manifest.open(newline="") as file:
        for row in csv.DictReader(file):
            entry = sets[row["path"].split("/")[0]]
            licences = [part for part in entry["licence"].split("; ") if part]
            entry["licence"] = "; ".join(dict.fromkeys([*licences, *row["licence"].split("; ")]))
            verbatim = row["status"] == "verbatim"
            key = row["repository"]
            if verbatim:
                sources[key] = {"repository": row["repository"], "commit": row["commit"]}
            origin = (
                [key, row["source_path"]]
                if verbatim
                else [None, f"{row['repository']}: {row['source_path']}"]
            )
            entry["files"].append([row["path"], int(row["bytes"]), row["sha256"], *origin])
    for name, path, origin_words in BESIDE:
        content = (manifest.parent / path).read_bytes()
        sets[name]["files"].append(
            [path, len(content), hashlib.sha256(content).hexdigest(), None, origin_words]
        )
    return {"sources": sources, "sets": sets}


def main() -> None:
    data = registry(Path(sys.argv[1]) / "MANIFEST.csv")
    lines = []
    for name, entry in data["sets"].items():
        rows = ",\n".join(f"   {json.dumps(row)}" for row in entry["files"])
        head = (
            f'"summary": {json.dumps(entry["summary"])}, "licence": {json.dumps(entry["licence"])}'
        )
        lines.append(f'  {json.dumps(name)}: {{{head}, "files": [\n{rows}\n  ]}}')
    sets = ",\n".join(lines)
    TARGET.write_text(
        f'{{\n "sources": {json.dumps(data["sources"])},\n "sets": {{\n{sets}\n }}\n}}\n'
    )


if __name__ == "__main__":
    main()
