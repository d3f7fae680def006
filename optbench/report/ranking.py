"""Tables of a report: the ranking of solvers, and gates and claims with their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape

from optbench.evaluate.claim_ledger import ClaimResult
from optbench.evaluate.gates import GateResult
from optbench.evaluate.hardware_models import mark_of
from optbench.evaluate.summaries import Summary
from optbench.html.marks import key
from optbench.html.page import gap_bar, hint, note, row, section, table
from optbench.report.formatting import (
    NONE,
    counted,
    figures,
    four_digits,
    percent,
    seconds,
    with_interval,
)
from optbench.report.study_report import StudyReport
from optbench.study.declared import BEST

CLAIRVOYANT = "clairvoyant: it knows what others cannot know yet, and is not ranked"
MARKS = {
    "holds": "✓",
    "fails": "✗",
    "not reproduced": "✗",
    "unknown": "?",
    "no data": "?",
    "not checked": "–",
}
SHADES = {"holds": "good", "fails": "bad", "not reproduced": "bad"}


def who(report: StudyReport, label: str, place: str = "") -> str:
    """The head of a solver's row: its mark and its name."""
    name = f"{key(report.number[label])}<span>{escape(label)}</span>"
    return f'<span class="who">{place}{name}</span>'


def ranking(report: StudyReport) -> str:
    """A row per solver, best first; those that have not run stand last."""
    columns = _columns(report)
    rows = []
    for place, each in enumerate(report.summaries, 1):
        shown = "–" if each.clairvoyant else str(place)
        head = who(report, each.label, f'<span class="place">{shown}</span>')
        if each.clairvoyant:
            head += f"<small>{CLAIRVOYANT}</small>"
        if each.compared:
            rows.append(row(head, [show(each) for _, show in columns]))
        else:
            missing = f'<td colspan="{len(columns)}" class="words">not run yet</td>'
            rows.append(f'<tr><th scope="row">{head}</th>{missing}</tr>')
    return table(["solver", *(name for name, _ in columns)], rows, "report-table ranking")


def _columns(report: StudyReport) -> list[tuple[str, Callable[[Summary], str]]]:
    """Heads of the ranking, and what a solver shows below each."""
    score, reference = report.score, report.plan.study.reference
    written = with_interval if score is None or score.is_share else figures
    out: list[tuple[str, Callable[[Summary], str]]] = []
    if score is not None:
        out.append((f"ranked by {score.source}", lambda each: stacked(written(each.score))))
    # The widest gap of levels says nothing where the last one is what is ranked by.
    widest = score is None or not score.is_last_gap
    if widest:
        out.append(("study gap", _study_gap))
    out.append(("behind first", lambda each: stacked(written(each.behind)) + _unequal(each)))
    if widest:
        out.append(("gap of its own run", lambda each: stacked(with_interval(each.gap))))
    excess = any(each.rpd is not None for each in report.summaries)
    if widest and (excess or not any(each.no_excess for each in report.summaries)):
        out.append(("above best known", lambda each: stacked(with_interval(each.rpd))))
    if reference != BEST and (excess or report.senses != {"max"}):
        out.append((f"regret to {reference}", lambda each: stacked(with_interval(each.regret))))
    out += [("optimum", _optimum), ("failed", lambda each: _count(each.failed))]
    if any(each.unsolved for each in report.summaries):
        out.append((f"no {report.decision}", lambda each: _count(each.unsolved)))
    return [
        *out,
        ("time", lambda each: seconds(each.time_s)),
        ("rank", lambda each: NONE if each.rank is None else f"{each.rank:.2f}"),
        ("wins", lambda each: f"{each.wins:,}"),
    ]


def without_excess(report: StudyReport) -> str:
    """A note on cells to which a relative excess over the best known does not apply."""
    reasons = Counter(
        words
        for rows in report.rows.values()
        for each in rows
        if (words := each.no_excess) is not None
    )
    parts = [f"{counted(count, 'cell')}: {words}" for words, count in reasons.most_common()]
    said = "No excess over the best known (rpd, regret) is given where it does not apply"
    return note(f"{said} ({'; '.join(parts)}).") if parts else ""


def _study_gap(each: Summary) -> str:
    return stacked(with_interval(each.study_gap)) + gap_bar(
        1.0 if each.study_gap is None else each.study_gap.value
    )


def _unequal(each: Summary) -> str:
    """A mark where a solver and the first did not have the same hardware."""
    return f"<small>{mark_of(each.unequal)}</small>" if each.unequal else ""


def _optimum(each: Summary) -> str:
    own = f"<small>{each.proved:,} by itself</small>" if each.proved != each.optimal else ""
    return f"{each.optimal:,} of {each.compared:,}{own}"


def stacked(words: str) -> str:
    """A mean with its interval, which follows it in brackets, below it."""
    mean, _, around = words.partition(" (")
    return f"{mean}<small>{around.rstrip(')')}</small>" if around else mean


def _count(count: int) -> str:
    return f'<span class="bad">{count:,}</span>' if count else "0"


def gates_section(gates: Sequence[GateResult]) -> str:
    """The gates of the study: each condition, the values found, and whether it holds."""
    if not gates:
        return ""
    rows = []
    for gate in gates:
        values = ", ".join(f"{part.text} = {figure(part.value)}" for part in gate.parts)
        remarks = [*gate.why, *([gate.remark] if gate.remark else [])]
        for each in gate.worst[:3]:
            value = each.why if each.value is None else figure(each.value)
            remarks.append(f"worst: {each.cell.title}: {value}")
        required = f"<code>{escape(gate.expression)}</code>{_small(remarks)}"
        cells = (required, escape(values), _verdict(gate.verdict))
        rows.append(row(escape(gate.name), cells, words=range(4)))
    held = sum(gate.holds for gate in gates)
    shown = table(
        ("gate", "requires", "found", "verdict"), rows, "report-table gates", words=range(4)
    )
    return section("Gates", shown, id="gates", aside=hint(f"{held} of {len(gates)} hold"))


def claims_section(claims: Sequence[ClaimResult]) -> str:
    """Published figures beside those of the study."""
    if not claims:
        return ""
    rows = []
    for each in claims:
        claim, ours = each.claim, figure(each.ours)
        if each.interval is not None:
            ours += _small([f"{figure(each.interval[0])} to {figure(each.interval[1])}"])
        formula = f"<code>{escape(claim.ours)}</code>{_small([*each.why, each.remark])}"
        allowed = (figure(each.bound), percent(each.mean_gap))
        cells = (figure(claim.paper), ours, *allowed, formula, _verdict(each.verdict))
        rows.append(row(escape(claim.text) + _small([claim.source]), cells, words=(5, 6)))
    held = sum(each.holds for each in claims)
    heads = ("claim", "published", "ours", "bound allows", "mean gap", "computed as", "verdict")
    shown = table(heads, rows, "report-table claims", words=(0, 5, 6))
    return section("Claims", shown, id="claims", aside=hint(f"{held} of {len(claims)} hold"))


def _small(remarks: Sequence[str | None]) -> str:
    return "".join(f"<small>{escape(words)}</small>" for words in remarks if words)


def _verdict(verdict: str) -> str:
    return (
        f'<span class="{SHADES.get(verdict, "unsure")}">{MARKS[verdict]} {escape(verdict)}</span>'
    )


def figure(value: float | bool | None) -> str:
    """A figure with four digits."""
    return NONE if value is None else four_digits(float(value) or 0.0)
