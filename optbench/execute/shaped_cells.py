"""What cells do with instances that are no schedules: their shape may be a user's code, which runs
in confined processes only.

An instance is stored as its canonical form and the name of its shape's class, from which every
process makes it again. What a solver's process answers is verified in another process that never
loads the solver: there the decision is read, verified, held against the shape's formulation, and
bounds are proved again from their certificates.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError, PluginCrashError, PluginError
from optbench.model.result import Bound
from optbench.plugins.author_errors import author_code
from optbench.rendering import resolve
from optbench.shapes.milp.core_labels import core_infeasibility, is_of_core, labelled_by_core
from optbench.shapes.protocol.measurements import MeasuringMachine
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.study.formula_names import CONDITIONS, MEASURES

# What else every run has in MLflow.
TRACKED = ("study_bound", "primal_integral")
# At most this many certificates, best first, are proved again; an honest solver has two or three.
MOST_PROOFS = 4
# Seconds in which the core looks for its own proof that an instance has no decision.
CERTIFY_S = 10.0
# Violations that are kept of a decision.
MOST_VIOLATIONS = 50


def describe(instance: ShapedInstance, path: Path) -> dict[str, Any]:
    """Write the canonical form of an instance, and return what the runner must know of it."""
    facts = ShapeFacts.of(instance, _files_of(type(instance.shape)))
    _refuse_taken_names(instance.shape, facts.metrics)
    document = instance.shape.write(instance)
    stored = {"home": facts.home, "problem": instance.problem, "document": document}
    path.write_text(json.dumps(stored, allow_nan=False), encoding="utf-8")
    if restored(path).hash != instance.hash:
        raise PluginError(
            f"shape {facts.name!r}: the data of {instance.name!r} changes when it is written to "
            "JSON and read again"
        )
    return {
        "instance": instance.name,
        "levels": instance.shape.num_levels(instance),
        "shape": facts.to_dict(),
    }


def restored(path: Path) -> ShapedInstance:
    """Make a stored instance again, with the shape's own class."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    instance = _shape_at(stored["home"]).read(stored["document"])
    object.__setattr__(instance, "problem", stored["problem"])
    found: ShapedInstance = instance
    return found


def _shape_at(home: str) -> Any:
    try:
        return resolve(home)()
    except (ImportError, AttributeError, TypeError) as error:
        raise PluginError(
            f"shape {home!r} cannot be made again ({error}); declare the class at the top level of "
            "its file, without arguments for __init__"
        ) from None


def _files_of(shape: type) -> tuple[str, ...]:
    """Return the files that declare a shape: those of its classes that are not optbench's."""
    found: dict[str, None] = {}
    for cls in shape.__mro__:
        if is_of_core(cls.__module__) or _is_of_python(cls.__module__):
            continue
        try:
            found[str(Path(inspect.getfile(cls)).resolve())] = None
        except (TypeError, OSError):  # a class of a library that is not written in Python
            continue
    return tuple(found)


def _is_of_python(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _refuse_taken_names(shape: Any, metrics: Iterable[str]) -> None:
    """Refuse metrics under the names of measures that every cell has."""
    taken = sorted(set(metrics) & {*CONDITIONS, *MEASURES, *TRACKED})
    if taken and _files_of(type(shape)):
        raise PluginError(
            f"shape {shape.name!r}: metric {taken[0]!r} has the name of a measure that every cell "
            "of a study has; give it another name"
        )


def answer_of(result: Any, instance: ShapedInstance) -> dict[str, Any] | None:
    """Return the decision of a result as plain JSON."""
    if result.schedule is None:
        return None
    return instance.shape.write_decision(instance, result.schedule)


def verify(payload: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Verify what a solver's process answered."""
    del folder
    instance = restored(Path(payload["instance_file"]))
    claims = json.loads(Path(payload["claims_file"]).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {"verdict": None, "decision": None, "infeasibility": None}
    if claims["infeasible"]:
        proof = core_infeasibility(instance, CERTIFY_S)
        answer["infeasibility"] = None if proof is None else proof.to_dict()
    if claims["decision"] is not None:
        try:
            decision = instance.shape.read_decision(instance, claims["decision"])
        except (OptbenchError, ValueError, TypeError, LookupError, ArithmeticError) as error:
            return {"refusal": "nonsense", "message": f"the decision: {error}"}
        with author_code(instance.shape, "verify", PluginCrashError):
            made = instance.shape.accept(instance, decision)
        verdict = made.verdict
        _refuse_taken_names(instance.shape, verdict.metrics)
        answer["decision"] = instance.shape.write_decision(instance, made.decision)
        answer["verdict"] = {
            "feasible": verdict.feasible,
            "objectives": list(verdict.objectives),
            "metrics": dict(verdict.metrics),
            "violations": [
                {"constraint": each.constraint, "message": each.message, "amount": each.amount}
                for each in verdict.violations[:MOST_VIOLATIONS]
            ],
        }
        if verdict.feasible:
            answer |= _pictures_of(instance, made.decision)
            answer["measured"] = _measured(instance, made.decision, payload.get("readings", 0))
    reached = () if answer["verdict"] is None else tuple(answer["verdict"]["objectives"])
    return {**answer, "bounds": list(_labelled(instance, claims["bounds"], reached))}


def _measured(instance: ShapedInstance, decision: Any, repeats: int) -> dict[str, Any]:
    """Return readings of a decision, or why there are none; the decision counts all the same."""
    if not repeats:
        return {}
    try:
        machine = MeasuringMachine.here(repeats)
        return instance.shape.measured(instance, decision, machine).to_dict()
    except (OptbenchError, OSError) as error:
        return {"reason": str(error)}


def _labelled(
    instance: ShapedInstance, claimed: Iterable[Mapping[str, Any]], reached: tuple[float, ...]
) -> Iterator[dict[str, Any]]:
    """Yield bounds with the labels that their certificates justify, each of its level with the
    levels before it held at the values reached.
    """
    left = MOST_PROOFS * instance.shape.num_levels(instance)
    for row in claimed:
        bound = Bound(row["value"], row["source"], row["proof"], row["level"], row["certificate"])
        is_open = bound.level <= len(reached)
        if bound.proof != "solver" and bound.certificate is not None and is_open and left:
            left -= 1
            level = instance.shape.at_level(instance, bound.level, reached)
            yield {**labelled_by_core(level, bound).to_dict(), "level": bound.level}
        else:
            yield {**bound.to_dict(), "proof": "solver"}


def _pictures_of(instance: ShapedInstance, decision: Any) -> dict[str, Any]:
    """Return the pictures of a decision; a decision counts although drawing it fails."""
    try:
        with author_code(instance.shape, "pictures", PluginCrashError):
            return {"pictures": dict(instance.shape.pictures(instance, decision))}
    except OptbenchError as error:
        return {"no_picture": str(error)}
