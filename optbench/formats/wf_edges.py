"""Dependencies of a workflow and their data volumes."""

from __future__ import annotations

import math

from optbench.formats.imported import ImportFindings
from optbench.formats.text import shorten
from optbench.formats.wf_records import BYTES_PER_GB, Workflow


def edges_of(
    workflow: Workflow, findings: ImportFindings
) -> tuple[list[int], list[int], list[float]]:
    """Parent, child and the volume of the files that pass between them, in GB."""
    index: dict[str, int] = {task.name: i for i, task in reversed(list(enumerate(workflow.tasks)))}
    index |= {task.id: i for i, task in enumerate(workflow.tasks)}
    declared: dict[tuple[int, int], int] = {}  # 1: by the child, 2: by the parent, 3: by both
    for i, task in enumerate(workflow.tasks):
        for names, bit in ((task.parents, 1), (task.children, 2)):
            for other in names:
                j = index.get(other, -1)
                if j < 0 or j == i:
                    what = (
                        "dependencies on tasks that are not there"
                        if j < 0
                        else "dependencies of a task on itself"
                    )
                    findings.add("dropped", what, f"{shorten(task.id)}: {shorten(other)}")
                    continue
                edge = (j, i) if bit == 1 else (i, j)
                declared[edge] = declared.get(edge, 0) | bit
    flat = workflow.version < "1.5"  # In that version an entry at one end is enough.
    half = [edge for edge, bits in declared.items() if bits != 3 and not flat]
    ids = [shorten(task.id) for task in workflow.tasks]
    what = "dependencies that only one of the two tasks lists; they are kept"
    findings.add_rows("warnings", what, [f"{ids[i]} -> {ids[j]}" for i, j in half])
    if not declared:
        declared = flows(workflow, findings)
    outputs = [set(task.outputs) for task in workflow.tasks]
    inputs = [set(task.inputs) for task in workflow.tasks]
    passed: set[str] = set()
    volumes = []
    for i, j in declared:
        small, large = sorted((outputs[i], inputs[j]), key=len)
        shared = [file for file in small if file in large]
        passed.update(shared)
        volumes.append(math.fsum(workflow.sizes.get(file, 0.0) for file in shared) / BYTES_PER_GB)
    unsized = sorted(file for file in passed if file not in workflow.sizes)
    findings.add_rows("assumed", "files without a size are empty", map(shorten, unsized))
    written, wanted = set[str]().union(*outputs), set[str]().union(*inputs)
    unlisted = sorted((wanted & written) - passed)
    what = "files that pass between tasks without a dependency; they add none"
    findings.add_rows("warnings", what, map(shorten, unlisted))
    ingress = sorted(wanted - written)
    findings.add_rows("dropped", "input files that no task writes", map(shorten, ingress))
    return [i for i, _ in declared], [j for _, j in declared], volumes


def flows(workflow: Workflow, findings: ImportFindings) -> dict[tuple[int, int], int]:
    """Dependencies on the first task that writes a file, if the workflow declares none."""
    writer: dict[str, int] = {}
    for i, task in enumerate(workflow.tasks):
        for file in task.outputs:
            writer.setdefault(file, i)
    found = {
        (writer[file], j): 3
        for j, task in enumerate(workflow.tasks)
        for file in task.inputs
        if file in writer and writer[file] != j
    }
    findings.add_rows("assumed", "dependencies by files, as the file declares none", (), len(found))
    return found
