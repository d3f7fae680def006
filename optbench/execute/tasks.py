"""What runs inside a cell's process: make an instance, bound it, solve it, or verify an answer."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from optbench import api
from optbench.errors import (
    AnswerError,
    ContradictionError,
    DisagreementError,
    OptbenchError,
    PluginCrashError,
    ShapeError,
    UnsupportedError,
)
from optbench.files import write_whole
from optbench.model.files.instance_json import write_instance
from optbench.model.files.result_json import result_to_dict
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.files.strict_json import jsonable
from optbench.model.instance import Instance
from optbench.model.result import Bound, Infeasibility
from optbench.plugins.overtime import killed_from_outside
from optbench.plugins.schedule_shape import shape_of

ANSWER = "answer.json"
INSTANCE = "instance.json"
# Messages of Python, numpy, C++ and torch.
OUT_OF_MEMORY = (
    "MemoryError",
    "std::bad_alloc",
    "DefaultCPUAllocator: can't allocate memory",
    "Cannot allocate memory",
)


def perform(kind: str, payload: Mapping[str, Any], folder: Path) -> None:
    """Run a job and write its answer; a refusal is also an answer."""
    began = time.perf_counter()
    try:
        answer = TASKS[kind](payload, folder)
    except DisagreementError as error:
        answer = {"refusal": "disagreement", "message": str(error)}
    except ContradictionError as error:
        answer = {"refusal": "false_bound", "message": str(error)}
    except UnsupportedError as error:
        answer = {"refusal": "refused", "message": str(error)}
    except ShapeError as error:
        answer = {"refusal": "unverified", "message": str(error)}
    except AnswerError as error:
        answer = {"refusal": "nonsense", "message": str(error)}
    except PluginCrashError as error:
        answer = {"refusal": "crashed", "message": str(error)}
    except OptbenchError as error:
        answer = {"refusal": "unavailable", "message": str(error)}
    answer["inside_s"] = round(time.perf_counter() - began, 6)
    write_answer(answer, folder)


def write_answer(answer: Mapping[str, Any], folder: Path) -> None:
    """Write an answer atomically."""
    write_whole(folder / ANSWER, json.dumps(jsonable(answer), allow_nan=False))


def make_instance(payload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the instance of a target and a seed as a native file, which the runner checks."""
    instance: Any = api.load_target(payload["target"], payload["seed"])
    if not isinstance(instance, Instance):
        from optbench.execute.shaped_cells import describe

        return describe(instance, folder / INSTANCE)
    write_instance(instance, folder / INSTANCE)
    return {"instance": instance.name, "instance_hash": instance.hash}


def bound(payload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return certified bounds that all solvers of the instance share."""
    instance = _instance(payload)
    found = api.bound(instance, time_limit_s=payload["time_limit_s"])
    return {"bounds": [_with_certificate(each) for each in found]}


def solve(payload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Run a solver; levels of the objective are bounded at the values reached before them."""
    instance = _instance(payload)
    with killed_from_outside():
        result = api.solve(
            instance,
            payload["solver"],
            time_limit_s=payload["time_limit_s"],
            work_limit=payload["work_limit"],
            seed=payload["seed"],
            threads=payload["threads"],
            bound=shape_of(instance).num_levels(instance) > 1,
            **payload["params"],
        )
    if result.status == "error" and mentions_out_of_memory(str(result.message)):
        return {"refusal": "memory_limit", "message": str(result.message)}
    if result.termination == "interrupted":
        return {
            "refusal": "crashed",
            "message": "the solver raised KeyboardInterrupt although no stop was requested",
        }
    document = result_to_dict(result) | {
        "bounds": [_with_certificate(each) for each in result.bounds]
    }
    if result.infeasibility is not None:
        document["infeasibility"] = _with_certificate(result.infeasibility)
    if not isinstance(instance, Instance):
        from optbench.execute.shaped_cells import answer_of

        return {"result": document, "decision": answer_of(result, instance)}
    schedule = None if result.schedule is None else schedule_to_dict(result.schedule, instance)
    return {"result": document, "schedule": schedule}


def verify(payload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Verify a decision of a shape other than schedules, which the runner verifies itself."""
    from optbench.execute import shaped_cells

    return shaped_cells.verify(payload, folder)


def _with_certificate(claim: Bound | Infeasibility) -> dict[str, Any]:
    """Return a claim together with its certificate, for the judge."""
    return claim.to_dict() | {"certificate": claim.certificate}


def mentions_out_of_memory(text: str) -> bool:
    """Whether a message or output reports that memory could not be allocated."""
    return any(words in text for words in OUT_OF_MEMORY)


def _instance(payload: Mapping[str, Any]) -> Any:
    file = Path(payload["instance_file"])
    if file.suffix == ".json":
        from optbench.execute.shaped_cells import restored

        return restored(file)
    return pickle.loads(file.read_bytes())


TASKS: dict[str, Callable[[Mapping[str, Any], Path], dict[str, Any]]] = {
    "instance": make_instance,
    "bound": bound,
    "solve": solve,
    "verify": verify,
}
