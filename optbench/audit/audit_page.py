"""The page of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from optbench.audit import audit_charts
from optbench.audit.advice import Clock
from optbench.audit.audit_run import Audit, Choice
from optbench.audit.coverage import ENOUGH, percent
from optbench.audit.findings import (
    FindingRow,
    advice_of,
    headline,
    rows_of,
    saving_of,
    to_the_second,
)
from optbench.audit.window import stamp
from optbench.html.page import (
    bullets,
    footer,
    header,
    machine_facts,
    note,
    page,
    row,
    scroll,
    section,
    table,
    text_table,
)
from optbench.html.quantities import amount

Cells = Sequence[str]
Rows = list[tuple[str, ...]]


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
    "No scheduler can be below the dots of the line: the energy there is proved in exact "
    "arithmetic, for each mean time in the "
    "system. Between them the line is straight, and the least may lie a little below it. Points "
    "with an arrow lie further out."
)
POLICIES_NOTE = (
    "Each schedule was made run by run, in order of arrival, and verified. The gap is to the "
    "least energy at the policy's own "
    "mean time in the system. In brackets: the energy without GPUs that idle after the last "
    "recorded run."
)
CLOCKS_NOTE = (
    "A clock (a share of the top one) is right while a second of a run in the system is worth so "
    "many watts. Under load, raise the price and follow the row."
)
PRICES_NOTE = (
    "Changes of the certified least energy of all runs, each proved by itself or by the bound's "
    "duals."
)


def facts(done: Audit) -> tuple[str, ...]:
    log = done.log
    gpus = ", ".join(
        f"{count:,} {kind}" for kind, count in zip(log.types, log.counts.tolist(), strict=True)
    )
    hours = f"{log.report.read['gpu_hours']:,.0f} GPU-hours"
    when = f"{stamp(log.window.opens)} to {stamp(log.window.closes)}"
    return (f"{log.num_runs:,} runs", gpus, when, hours)


def cards(done: Audit) -> str:
    mean, coverage = to_the_second(done.record.sojourn_s), done.log.coverage
    saving, found = saving_of(done), advice_of(done)
    used = "used by the record, which verifies"
    limit = f"no scheduler uses less at the same mean time in the system ({mean})"
    covered, told = ("not known", "from when to when the log lists every run"), ""
    if coverage.share < ENOUGH:
        used = "used by the runs that are covered; their record verifies"
        covered = (percent(coverage.share), "of the GPU-hours of that time are covered")
    if saving is None:
        told = f'<section><p class="bad">{escape(capital(headline(done)))}.</p></section>'
    else:
        covered = (f"{100 * saving:.1f} %", f"at most to be saved; {coverage.words}")
    shown = [
        (amount(done.record.energy_j, "J"), used),
        (amount(done.least.energy_j, "J"), f"certified: {limit}"),
        covered,
    ]
    if found.take is not None and found.saving is not None:
        words = f"saved by {found.take.policy} on the half of the runs that it was not chosen on"
        shown.append((f"{100 * found.saving:.1f} %", words))
    elif saving is not None:
        shown.append(("no advice", found.words.removeprefix("no advice: ")))
    inside = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in shown)
    return f'{told}<section class="cards">{inside}</section>'


def capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def causes_note(done: Audit) -> str:
    said = "; ".join(f"{name}: {audit_charts.WORDS[name]}" for name in done.causes)
    kept = (
        f" Kept as on record: {', '.join(sorted(done.options.keep))}." if done.options.keep else ""
    )
    return (
        f"{said}. A cause's share is what freeing it saves of the certified least energy, "
        "averaged over all orders of freeing "
        f"(Shapley); the shares add up to the excess.{kept}"
    )


def frontier(done: Audit) -> str:
    points = []
    for each in rows_of(done):
        made = each.played
        if made.error is None:
            name = made.policy + (" (take)" if each.taken else "")
            points.append((name, made.sojourn_s, made.energy_j))
    recorded = (done.record.sojourn_s, done.record.energy_j)
    return audit_charts.frontier(done.frontier, recorded, points)


def policies(done: Audit) -> str:
    record, least = done.record, amount(done.least.energy_j, "J")
    heads = (
        "policy",
        "energy",
        "of the record",
        "mean time",
        "95 %",
        "least at its time",
        "gap",
        "",
    )
    times = (to_the_second(record.sojourn_s), to_the_second(record.p95_s))
    cells = (amount(record.energy_j, "J"), "100 %", *times, least, f"{100 * done.saving:.1f} %", "")
    return table(heads, [row("record", cells), *map(policy_row, rows_of(done))], "plain")


def policy_row(found: FindingRow) -> str:
    made = found.played
    params = ", ".join(f"{key} = {value:.6g}" for key, value in made.params.items())
    head = escape(made.policy) + (f"<small>{escape(params)}</small>" if params else "")
    cells: Cells = ("",) * 6
    if made.error is None:
        tail, least = to_the_second(made.p95_s), amount(made.least_j, "J")
        cells = (found.energy, found.share, found.mean, tail, least, found.gap)
    shown = list(map(escape, (*cells, found.note)))
    return row(head, shown, class_="take" if found.taken else "")


def choice(found: Choice | None, done: Audit) -> str:
    advised = advice_of(done)
    words = f'<p class="{"" if advised.take else "bad"}">{escape(capital(advised.words))}.</p>'
    if found is None or not done.log.coverage.enough:
        return words + uses(done)
    later, whole = found.later, found.whole
    words += (
        f"<p><b>{escape(whole.label)}</b> was chosen among {done.tried:,} on the first half of "
        "the runs. On the second half, "
        f"which it was not chosen on, it draws {amount(later.inside_j, 'J')} "
        f"({change_of(found.later_saving)} than the "
        f"record) at a mean time in the system of {to_the_second(later.sojourn_s)} (the record: "
        f"{to_the_second(found.later_recorded_s)}).</p>"
    )
    if advised.take is None:
        return words + uses(done)
    settings = "".join(f" -p {key}={value}" for key, value in whole.params.items())
    command = (
        "<p>To play it on these runs: <code>optbench audit LOG ... --instance runs.json</code>, "
        "then "
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
    body: Rows = []
    for (name, gpus), found in out.items():
        now = next((f"{each.clock:g}" for each in found if each.now), "")
        steps = ", then ".join(map(step, found))
        body.append((f"{name}, {gpus} GPU{'s' * (gpus > 1)} per run", now, steps))
    dear = ", ".join(f"{value:.0f} W per {name}" for name, value in gpu_w.items() if value >= 1.0)
    scarce = " Where GPUs are scarce, add what a second of them is worth to others in the optimum"
    meaning = CLOCKS_NOTE + (f"{scarce}: {dear}." if dear else "")
    heads = ("GPUs", "clock to take", "by the price of a second in the system")
    return "<h3>Clock thresholds</h3>" + text_table(heads, body, "plain") + note(meaning)


def step(each: Clock) -> str:
    limit = f" up to {each.to_w:,.0f} W" if each.to_w < float("inf") else ""
    return f"{each.clock:g}{limit}"


def uses(done: Audit) -> str:
    rows: Rows = []
    for use in done.uses[:12]:
        rows.append((use.gpu_type, str(use.gpus), f"{use.clock:g}", f"{100 * use.share:.1f} %"))
    heads = ("type", "GPUs per run", "clock", "share of the work")
    shown = text_table(heads, rows, "plain")
    return f"<h3>Where the optimum of the bound does its work</h3>{shown}"


def prices(done: Audit) -> str:
    found, longer = done.prices, "more of mean time in the system"
    rows: Rows = [(f"one more {name}", change(value)) for name, value in found.gpu_j.items()]
    rows.append((f"a second {longer}", f"at most {amount(found.second_j, 'J')} less"))
    if found.watt_s is not None:
        rows.append(("a watt less of mean power", f"at least {found.watt_s:.3g} s {longer}"))
    if "idle" in done.options.free:
        rows.append(("idle GPUs that may sleep", change(done.awake_j - done.least.energy_j)))
    return text_table(("what", "least energy"), rows, "plain") + note(PRICES_NOTE)


def change(less_j: float) -> str:
    """By how much an energy falls or rises."""
    if abs(less_j) < 1.0:
        return "no change"
    return f"{amount(abs(less_j), 'J')} {'less' if less_j > 0 else 'more (it would rest)'}"


def record(done: Audit) -> str:
    r, log = done.record, done.log
    checked = f"{r.nodes_checked:,} runs on {len(log.nodes):,} nodes"
    times = f"{to_the_second(r.sojourn_s)}, {to_the_second(r.service_s)}"
    rows: Rows = [
        ("verified by type of GPU", f"{log.num_runs:,} runs"),
        ("verified node by node", checked if r.nodes_checked else "no: the log names no nodes"),
        ("energy while busy", amount(r.busy_j, "J")),
        ("energy of idle GPUs", amount(r.rest_j, "J")),
        ("mean time in the system, at work", times),
    ]
    if r.measured_j is not None and r.modelled_j is not None:
        measured, modelled = amount(r.measured_j, "J"), amount(r.modelled_j, "J")
        said = f"{measured} measured (whole nodes), {modelled} by the model (GPUs)"
        rows.append(("runs with a measured energy", said))
    return text_table(("what", ""), rows, "plain")


def left_out(done: Audit) -> list[str]:
    report = done.log.report
    parts = []
    for title, found in (("Left out", report.dropped), ("Unusual", report.warnings)):
        if found:
            parts += [f"<h3>{title}</h3>", bullets([str(each) for each in found])]
    return parts
