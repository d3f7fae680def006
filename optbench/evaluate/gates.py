"""Gates: conditions over a study that hold, fail, or are unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.formula_values import Part, evaluate
from optbench.evaluate.hardware_models import unequal_words
from optbench.evaluate.worst_cells import WorstCell, worst_cells
from optbench.run.repeat_command import command_of
from optbench.study.declared import Study
from optbench.study.expectations import gate_formula

Verdict = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class GateResult:
    """``parts`` are the numbers read, ``why`` what is unknown, ``worst`` the cells to look at;
    ``remark`` says that the solvers did not have the same hardware.
    """

    name: str
    expression: str
    verdict: Verdict
    parts: tuple[Part, ...]
    why: tuple[str, ...] = ()
    worst: tuple[WorstCell, ...] = ()
    remark: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "expression": self.expression,
            "verdict": self.verdict,
            "values": {part.text: part.value for part in self.parts},
            "why": list(self.why),
            "worst": [
                {
                    "solver": each.cell.label,
                    "instance": each.cell.instance,
                    "seed": each.cell.seed,
                    "key": each.cell.key,
                    "expression": each.text,
                    "value": each.value,
                    "why": each.why or None,
                    "command": command_of(each.cell),
                }
                for each in self.worst
            ],
            **({"remark": self.remark} if self.remark else {}),
        }


def judge_gate(study: Study, name: str, columns: CellColumns) -> GateResult:
    """Evaluate a gate; an unknown gate does not hold."""
    formula = gate_formula(study, name)
    found = evaluate(formula, columns)
    verdict: Verdict = "unknown" if found.value is None else "holds" if found.value else "fails"
    worst = () if verdict == "holds" else worst_cells(formula, columns)
    remark = unequal_words([columns.cells(label) for label in formula.solvers])
    return GateResult(name, formula.source, verdict, found.parts, found.why, worst, remark)
