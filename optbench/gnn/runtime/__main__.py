"""A process of a training, or the command that starts all of them.

    python -m optbench.gnn.runtime FOLDER ...

trains the jobs of these folders. Under ``torchrun`` (RANK is set) this is one of the processes.
Otherwise it starts one process for each device; where PET_NNODES, which ``torchrun`` reads, names
several machines, it does so through ``torchrun``, so that the command is the same on each of ten
machines as on one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(folders: list[Path]) -> int:
    if not folders:
        print("name the folders of jobs, such as: python -m optbench.gnn.runtime my_job")
        return 2
    from optbench.gnn.runtime.training_processes import run_process, start_everywhere

    return run_process(folders) if "RANK" in os.environ else start_everywhere(folders)


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]]))
