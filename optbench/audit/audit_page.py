"""The page of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from optbench.audit import audit_charts
from optbench.audit.advice import Clock
from optbench.audit.audit_run import Audit, Choice
from optbench.audit.coverage import ENOUGH, percent
from optbench.audit.findings import FindingRow, advice_of, headline, rows_of, saving_of
from optbench.audit.window import stamp
from optbench.html.page import bullets, footer, header, machine_facts, note, page, row, scroll, section, table
from optbench.html.quantities import amount, clock

Cells = Sequence[str]


def render(done: Audit) -> str:
    """The page as text."""
    falls = audit_charts.waterfall(done.record.energy_j, done.causes, done.least.energy_j)
    body = [
        header(f"Audit of {done.log.name}", *facts(done)),
        cards(done),
        section("Where the excess comes from", scroll(falls), note(causes_note(done))),
        section("Energy against time in the system", scroll(frontier(done)), note(FRONTIER_NOTE)),
        section("Policies on the same runs", policies(done), note(POLICIES_NOTE)),
        section("Recommendation", choice(done.choice, done)),
        section("Marginal values", prices(done)),
        section("The record", record(done)),
        section("Assumptions", bullets(done.assumptions), *left_out(done)),
        footer(*machine_facts(), f"seed {done.options.seed}", f"audited in {done.wall_s:.1f} s"),
    ]
    return page(f"Audit of {done.log.name}", body, __package__, ("audit.css",))


FRONTIER_NOTE = (
    "No scheduler can be below the dots of the line: the energy there is proved in exact arithmetic, for each mean time in the "
    "system. Between them the line is straight, and the least may lie a little below it. Points with an arrow lie further out."
)
POLICIES_NOTE = (
    "Each schedule was made run by run, in order of arrival, and verified. The gap is to the least energy at the policy's own "
    "mean time in the system. In brackets: the energy without GPUs that idle after the last recorded run."
)


def facts(done: Audit) -> tuple[str, ...]:
    log = done.log
    gpus = ", ".join(f"{count:,} {kind}" for kind, count in zip(log.types, log.counts.tolist(), strict=True))
    hours = f"{log.report.read['gpu_hours']:,.0f} GPU-hours"
    when = f"{stamp(log.window.opens)} to {stamp(log.window.closes)}"
    return (f"{log.num_runs:,} runs", gpus, when, hours)


def cards(done: Audit) -> str:
    mean, coverage = clock(round(done.record.sojourn_s)), done.log.coverage
    part = coverage.share < ENOUGH
    what = "used by the runs that are covered; their record verifies" if part else "used by the record, which verifies"
    shown = [
        (amount(done.record.energy_j, "J"), what),
        (amount(done.least.energy_j, "J"), f"certified: no scheduler uses less at the same mean time in the system ({mean})"),
    ]
    saving, found = saving_of(done), advice_of(done)
    if saving is None:
        why = (percent(coverage.share), "of the GPU-hours of that time are covered")
        shown.append(why if part else ("not known", "from when to when the log lists every run"))
    else:
        shown.append((f"{100 * saving:.1f} %", f"at most to be saved; {coverage.words}"))
    if found.take is not None and found.saving is not None:
        words = f"saved by {found.take.policy} on the half of the runs that it was not chosen on"
        shown.append((f"{100 * found.saving:.1f} %", words))
    elif saving is not None:
        shown.append(("no advice", found.words.removeprefix("no advice: ")))
    inside = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in shown)
    told = "" if saving is not None else f'<section><p class="bad">{escape(capital(headline(done)))}.</p></section>'
    return f'{told}<section class="cards">{inside}</section>'


def capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def causes_note(done: Audit) -> str:
    said = "; ".join(f"{name}: {audit_charts.WORDS[name]}" for name in done.causes)
    kept = f" Kept as on record: {', '.join(sorted(done.options.keep))}." if done.options.keep else ""
    return (
        f"{said}. A cause's share is what freeing it saves of the certified least energy, averaged over all orders of freeing "
        f"(Shapley); the shares add up to the excess.{kept}"
    )


def frontier(done: Audit) -> str:
    rows = [row for row in rows_of(done) if row.played.error is None]
    points = [(r.played.policy + (" (take)" if r.taken else ""), r.played.sojourn_s, r.played.energy_j) for r in rows]
    return audit_charts.frontier(done.frontier, (done.record.sojourn_s, done.record.energy_j), points)


def cells_table(heads: Cells, rows: Sequence[tuple[Cells, str]]) -> str:
    """Rows of plain text, each with a class; further lines of a row's head are small."""
    shown = [row(head_of(head), [escape(each) for each in cells], class_=kind) for (head, *cells), kind in rows]
    return table(heads, shown, "plain")


def head_of(words: str) -> str:
    first, *rest = words.split("\n")
    return escape(first) + (f"<small>{escape(', '.join(rest))}</small>" if rest else "")


def policies(done: Audit) -> str:
    record = done.record
    heads = ("policy", "energy", "of the record", "mean time", "95 %", "least at its time", "gap", "")
    first = (
        "record", amount(record.energy_j, "J"), "100 %", clock(round(record.sojourn_s)), clock(round(record.p95_s)),
        amount(done.least.energy_j, "J"), f"{100 * done.saving:.1f} %", "",
    )  # fmt: skip
    return cells_table(heads, [(first, ""), *((policy_row(row), "take" if row.taken else "") for row in rows_of(done))])


def policy_row(row: FindingRow) -> Cells:
    made = row.played
    name = made.policy + "".join(f"\n{key} = {value:.6g}" for key, value in made.params.items())
    if made.error is not None:
        return (name, *[""] * 6, row.note)
    return (
        name, row.energy, row.share, row.mean, clock(round(made.p95_s)), amount(made.least_j, "J"), row.gap, row.note,
    )  # fmt: skip


def choice(found: Choice | None, done: Audit) -> str:
    advised = advice_of(done)
    words = f'<p class="{"" if advised.take else "bad"}">{escape(capital(advised.words))}.</p>'
    if found is None or not done.log.coverage.enough:
        return words + uses(done)
    later, whole = found.later, found.whole
    words += (
        f"<p><b>{escape(whole.label)}</b> was chosen among {done.tried:,} on the first half of the runs. On the second half, "
        f"which it was not chosen on, it draws {amount(later.inside_j, 'J')} ({change_of(found.later_saving)} than the "
        f"record) at a mean time in the system of {clock(round(later.sojourn_s))} (the record: "
        f"{clock(round(found.later_recorded_s))}).</p>"
    )
    if advised.take is None:
        return words + uses(done)
    settings = "".join(f" -p {key}={value}" for key, value in whole.params.items())
    command = (
        f"<p>To play it on these runs: <code>optbench audit LOG ... --instance runs.json</code>, then "
        f"<code>optbench simulate runs.json --policy {escape(whole.policy + settings)}</code></p>"
    )
    return words + command + clocks(found.clocks, done.prices.gpu_w) + uses(done)


def change_of(saving: float) -> str:
    return f"{100 * abs(saving):.1f} % {'less' if saving >= 0 else 'more'}"


def clocks(rows: Sequence[Clock], gpu_w: Mapping[str, float]) -> str:
    """A row per type and number of GPUs: which clock is right at which price of time."""
    out: dict[tuple[str, int], list[Clock]] = {}
    for each in rows:
        out.setdefault((each.gpu_type, each.gpus), []).append(each)
    body: list[tuple[Cells, str]] = []
    for (name, gpus), found in out.items():
        now = next((f"{each.clock:g}" for each in found if each.now), "")
        steps = ", then ".join(
            f"{each.clock:g}" + (f" up to {each.to_w:,.0f} W" if each.to_w < float("inf") else "") for each in found
        )
        body.append(((f"{name}, {gpus} GPU{'s' * (gpus > 1)} per run", now, steps), ""))
    dear = ", ".join(f"{value:.0f} W per {name}" for name, value in gpu_w.items() if value >= 1.0)
    scarce = f" Where GPUs are scarce, add what a second of them is worth to others in the optimum: {dear}." if dear else ""
    meaning = note(
        "A clock (a share of the top one) is right while a second of a run in the system is worth so many watts. "
        f"Under load, raise the price and follow the row.{scarce}"
    )
    heads = ("GPUs", "clock to take", "by the price of a second in the system")
    return "<h3>Clock thresholds</h3>" + cells_table(heads, body) + meaning


def uses(done: Audit) -> str:
    rows: list[tuple[Cells, str]] = [
        ((u.gpu_type, str(u.gpus), f"{u.clock:g}", f"{100 * u.share:.1f} %"), "") for u in done.uses[:12]
    ]
    heads = ("type", "GPUs per run", "clock", "share of the work")
    return "<h3>Where the optimum of the bound does its work</h3>" + cells_table(heads, rows)


def prices(done: Audit) -> str:
    found = done.prices
    rows: list[tuple[Cells, str]] = [((f"one more {name}", change(value)), "") for name, value in found.gpu_j.items()]
    rows.append((("a second more of mean time in the system", f"at most {amount(found.second_j, 'J')} less"), ""))
    if found.watt_s is not None:
        rows.append((("a watt less of mean power", f"at least {found.watt_s:.3g} s more of mean time in the system"), ""))
    if "idle" in done.options.free:
        rows.append((("idle GPUs that may sleep", change(done.awake_j - done.least.energy_j)), ""))
    proofs = "Changes of the certified least energy of all runs, each proved by itself or by the bound's duals."
    return cells_table(("what", "least energy"), rows) + note(proofs)


def change(less_j: float) -> str:
    """By how much an energy falls or rises."""
    if abs(less_j) < 1.0:
        return "no change"
    return f"{amount(abs(less_j), 'J')} {'less' if less_j > 0 else 'more (it would rest)'}"


def record(done: Audit) -> str:
    r, log = done.record, done.log
    rows: list[tuple[Cells, str]] = [
        (("verified by type of GPU", f"{log.num_runs:,} runs"), ""),
        (
            (
                "verified node by node",
                f"{r.nodes_checked:,} runs on {len(log.nodes):,} nodes" if r.nodes_checked else "no: the log names no nodes",
            ),
            "",
        ),
        (("energy while busy", amount(r.busy_j, "J")), ""),
        (("energy of idle GPUs", amount(r.rest_j, "J")), ""),
        (("mean time in the system, at work", f"{clock(round(r.sojourn_s))}, {clock(round(r.service_s))}"), ""),
    ]
    if r.measured_j is not None and r.modelled_j is not None:
        said = f"{amount(r.measured_j, 'J')} measured (whole nodes), {amount(r.modelled_j, 'J')} by the model (GPUs)"
        rows.append((("runs with a measured energy", said), ""))
    return cells_table(("what", ""), rows)


def left_out(done: Audit) -> list[str]:
    report = done.log.report
    parts = []
    for title, found in (("Left out", report.dropped), ("Unusual", report.warnings)):
        if found:
            parts += [f"<h3>{title}</h3>", bullets([str(each) for each in found])]
    return parts


