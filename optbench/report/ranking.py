"""Tables of a report: the ranking of solvers, and gates and claims with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from optbench.evaluate import stats
from optbench.evaluate.claim_ledger import ClaimResult
from optbench.evaluate.gates import GateResult
from optbench.evaluate.scores import Score
from optbench.evaluate.summaries import Summary
from optbench.html.marks import key
from optbench.html.page import hint, section, table
from optbench.html.quantities import plain
from optbench.report.formatting import NONE, figures, interval, percent, seconds
from optbench.report.study_report import StudyReport
from optbench.study.declared import BEST

MARKS = {"holds": "✓", "fails": "✗", "not reproduced": "✗", "unknown": "?", "no data": "?"}
SHADES = {"holds": "good", "fails": "bad", "not reproduced": "bad"}


def ranking(report: StudyReport, number: dict[str, int]) -> str:
    """A row per solver, best first; those that have not run stand last."""
    regret = report.plan.study.reference != BEST
    by = [] if report.score is None else [f"ranked by {report.score.source}"]
    heads = ["solver", *by, "study gap", "behind first", "gap of its own run", "above best known"]
    heads += [f"regret to {report.plan.study.reference}"] if regret else []
    unsolved = any(each.unsolved for each in report.summaries)
    heads += ["optimum", "failed", *(["no schedule"] if unsolved else []), "time", "rank", "wins"]
    places = enumerate(report.summaries, 1)
    rows = [_row(place, each, number[each.label], regret, unsolved, report.score) for place, each in places]
    return table(heads, rows, "report-table ranking")


def _row(place: int, each: Summary, k: int, regret: bool, unsolved: bool, score: Score | None) -> str:
    who = f'<span class="place">{place}</span>{key(k)}<span>{escape(each.label)}</span>'
    name = f'<th scope="row"><span class="who">{who}</span></th>'
    if not each.compared:
        return f'<tr>{name}<td colspan="{9 + regret + unsolved + (score is not None)}" class="words">not run yet</td></tr>'
    closed = 0.0 if each.study_gap is None else 100 * (1 - min(1.0, each.study_gap.value))
    gap = f'<i class="gap"><i style="width:{closed:.1f}%"></i></i>'
    shown = _estimate if score is None or score.is_share else _figures
    cells = [] if score is None else [f"<td>{shown(each.score)}</td>"]
    cells += [
        f"<td>{_estimate(each.study_gap)}{gap}</td>",
        f"<td>{shown(each.behind)}</td>",
        f"<td>{_estimate(each.gap)}</td>",
        f"<td>{_estimate(each.rpd)}</td>",
    ]
    if regret:
        cells.append(f"<td>{_estimate(each.regret)}</td>")
    own = f"<small>{each.proved:,} by itself</small>" if each.proved != each.optimal else ""
    cells += [
        f"<td>{each.optimal:,} of {each.compared:,}{own}</td>",
        _count(each.failed),
        *([_count(each.unsolved)] if unsolved else []),
        f"<td>{seconds(each.time_s)}</td>",
        f"<td>{NONE if each.rank is None else f'{each.rank:.2f}'}</td>",
        f"<td>{each.wins:,}</td>",
    ]
    return f"<tr>{name}{''.join(cells)}</tr>"


def _estimate(found: stats.Estimate | None) -> str:
    """The mean with its interval below it."""
    if found is None:
        return NONE
    around = interval(found)
    return f"{percent(found.value)}<small>{around}</small>" if around else percent(found.value)


def _figures(found: stats.Estimate | None) -> str:
    """The mean in any unit with its interval below it."""
    mean, _, around = figures(found).partition(" ")
    return f"{mean}<small>{around.strip('()')}</small>" if around else mean


def _count(count: int) -> str:
    return f'<td class="bad">{count:,}</td>' if count else "<td>0</td>"


def gates_section(gates: Sequence[GateResult]) -> str:
    """The gates of the study: each condition, the values found, and whether it holds."""
    if not gates:
        return ""
    rows = []
    for gate in gates:
        values = ", ".join(f"{part.text} = {figure(part.value)}" for part in gate.parts)
        why = "".join(f"<small>{escape(words)}</small>" for words in gate.why)
        worst = "".join(
            f"<small>worst: {escape(each.cell.title)}: {escape(each.why if each.value is None else figure(each.value))}</small>"
            for each in gate.worst[:3]
        )
        asked = f'<td class="words"><code>{escape(gate.expression)}</code>{why}{worst}</td>'
        found = f'<td class="words">{escape(values)}</td>'
        rows.append(f'<tr><th scope="row">{escape(gate.name)}</th>{asked}{found}{_verdict(gate.verdict)}</tr>')
    held = sum(gate.holds for gate in gates)
    shown = table(("gate", "requires", "found", "verdict"), rows, "report-table gates", words=range(4))
    return section("Gates", shown, id="gates", aside=hint(f"{held} of {len(gates)} hold"))


def claims_section(claims: Sequence[ClaimResult]) -> str:
    """Published figures beside those of the study."""
    if not claims:
        return ""
    rows = []
    for each in claims:
        spread = "" if each.interval is None else f"<small>{figure(each.interval[0])} to {figure(each.interval[1])}</small>"
        said = "".join(f"<small>{escape(words)}</small>" for words in (*each.why, *([each.remark] if each.remark else [])))
        rows.append(
            f'<tr><th scope="row">{escape(each.claim.text)}<small>{escape(each.claim.source)}</small></th>'
            f"<td>{figure(each.claim.paper)}</td><td>{figure(each.ours)}{spread}</td><td>{figure(each.bound)}</td>"
            f'<td>{percent(each.mean_gap)}</td><td class="words"><code>{escape(each.claim.ours)}</code>{said}</td>'
            f"{_verdict(each.verdict)}</tr>"
        )
    held = sum(each.holds for each in claims)
    heads = ("claim", "published", "ours", "bound allows", "mean gap", "computed as", "verdict")
    shown = table(heads, rows, "report-table claims", words=(0, 5, 6))
    return section("Claims", shown, id="claims", aside=hint(f"{held} of {len(claims)} hold"))


def _verdict(verdict: str) -> str:
    return f'<td class="words"><span class="{SHADES.get(verdict, "unsure")}">{MARKS[verdict]} {escape(verdict)}</span></td>'


def figure(value: float | bool | None) -> str:
    """A figure with four digits."""
    return NONE if value is None else plain(float(f"{float(value):.4g}")) if value else "0"
