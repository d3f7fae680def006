"""Instances and results of other shapes than schedules: a line, HTML for notebooks, and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from statistics import fmean
from typing import Any

from optbench.errors import OptbenchError, PluginCrashError, clipped
from optbench.html.captions import number
from optbench.html.page import (
    footer,
    header,
    machine_facts,
    note,
    page,
    section,
    svg_image,
    text_table,
    titled_figure,
)
from optbench.html.summary_table import result_table
from optbench.model.result import Bound, Result
from optbench.plugins.author_errors import author_code
from optbench.shapes.protocol.measurements import Measurements
from optbench.shapes.protocol.shape import Metric
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# Entries of a field of the data that are shown, and pictures of a decision.
MOST_ENTRIES, MOST_PICTURES = 8, 4
UNKNOWN = Metric("", "")


def shaped_line(instance: ShapedInstance) -> str:
    """``<Instance 'packing-8-0' of shape 'packing': 8 memory_gb, 9 gpu_gb, 9 price_usd>``."""
    shape = instance.shape
    return f"<Instance {instance.name!r} of shape {shape.name!r}: {shape.describe(instance)}>"


def shaped_facts(instance: ShapedInstance) -> list[str]:
    """Shape, sizes and objective."""
    shape = instance.shape
    verb = {"min": "minimise", "max": "maximise"}[shape.sense(instance)]
    label = shape.objective_label(instance).removeprefix("max ").removeprefix("min ")
    return [f"shape {shape.name}", shape.describe(instance), f"{verb} {label}"]


def instance_parts(instance: ShapedInstance) -> list[str]:
    """The data, the metrics and the constraints, each a table."""
    shape = instance.shape
    constraints = list(shape.constraints.items())
    return [
        header(instance.name, *shaped_facts(instance)),
        section("Data", *_filled(("field", "entries", "values"), _data_rows(instance), (0, 2))),
        section("Metrics", *_filled(("metric", "unit", "meaning"), _metric_words(instance))),
        section("Constraints", *_filled(("constraint", "meaning"), constraints, (0, 1))),
    ]


def result_parts(result: Result, instance: ShapedInstance) -> list[str]:
    """The objective with its bound and gap, violations, every metric, and the shape's pictures."""
    verdict = result_table(
        [result],
        [],
        lambda bound, other: _is_tighter(instance, bound, other),
        f"this {instance.shape.decision}",
    )
    metrics = _filled(
        ("metric", "value", "unit", "meaning"), _metric_rows(result, instance), (0, 3)
    )
    return [
        header(instance.name, *shaped_facts(instance)),
        verdict,
        section("Metrics", *metrics),
        section(instance.shape.decision.capitalize(), *_figures(result, instance)),
    ]


def page_of_shaped(instance: ShapedInstance) -> str:
    """The page of an instance."""
    return page(instance.name, [*instance_parts(instance), _origin(instance)])


def page_of_decision(result: Result, instance: ShapedInstance) -> str:
    """The page of a result, for ``result.html(path)``."""
    return page(instance.name, [*result_parts(result, instance), _origin(instance)])


def _origin(instance: ShapedInstance) -> str:
    return footer(*machine_facts(), f"instance {instance.hash[:12]}")


def _filled(
    heads: tuple[str, ...], rows: list[Any], words: tuple[int, ...] = (0, 1, 2)
) -> list[str]:
    """A table, or nothing where it has no rows: the section around it is then empty too."""
    return [text_table(heads, rows, words=words)] if rows else []


def _is_tighter(instance: ShapedInstance, bound: Bound, other: Bound) -> bool:
    return instance.shape.is_better(instance, other.value, bound.value)


def _data_rows(instance: ShapedInstance) -> list[tuple[str, str, str]]:
    """The fields of the data; a programme has too many, its sizes stand above."""
    if instance.shape.name == "milp" or not is_dataclass(instance.data):
        return []
    named = ((each.name, getattr(instance.data, each.name)) for each in fields(instance.data))
    return [(name, *_shown(value)) for name, value in named]


def _shown(value: Any) -> tuple[str, str]:
    """The number of entries of a field, and the first of them."""
    if not isinstance(value, (tuple, list)):
        return "", clipped(_text(value))
    shown = ", ".join(clipped(_text(each)) for each in value[:MOST_ENTRIES])
    return f"{len(value):,}", shown + (", ..." if len(value) > MOST_ENTRIES else "")


def _text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _metric_words(instance: ShapedInstance) -> list[tuple[str, str, str]]:
    return [
        (name, metric.unit, metric.words + _how_found(metric))
        for name, metric in instance.shape.metrics.items()
    ]


def _how_found(metric: Metric) -> str:
    if metric.also_measured:
        return ", computed and measured"
    return ", measured" if metric.measured else ""


def _metric_rows(result: Result, instance: ShapedInstance) -> list[tuple[str, str, str, str]]:
    known = instance.shape.metrics
    rows = [
        (name, number(value), known.get(name, UNKNOWN).unit, known.get(name, UNKNOWN).words)
        for name, value in result.metrics.items()
    ]
    readings: dict[str, tuple[float, ...]] = getattr(result.measured, "readings", {})
    for name, values in readings.items():
        metric = known.get(name, UNKNOWN)
        words = f"{metric.words}; mean of {len(values)} readings from {number(min(values))} to "
        rows.append((name, number(fmean(values)), metric.unit, words + number(max(values))))
    return rows


def _drawn(result: Result, instance: ShapedInstance) -> Mapping[str, str]:
    """The pictures by title, with readings where some were taken."""
    if isinstance(result.measured, Measurements):
        return instance.shape.measured_pictures(instance, result.schedule, result.measured)
    return instance.shape.pictures(instance, result.schedule)


def _figures(result: Result, instance: ShapedInstance) -> Iterator[str]:
    """The pictures of the decision; where drawing fails, why."""
    if result.schedule is None or not result.verified:
        return
    try:
        with author_code(instance.shape, "pictures", PluginCrashError):
            found = dict(_drawn(result, instance))
    except OptbenchError as error:
        yield note(f"no picture: {error}")
        return
    for title, text in list(found.items())[:MOST_PICTURES]:
        if isinstance(text, str) and text.lstrip().startswith("<svg"):
            words = f"{instance.shape.decision} of {result.solver}, seed {result.seed}"
            yield titled_figure(str(title), svg_image(str(title), text), words)
        else:
            yield note(f"picture {str(title)!r} is no SVG text that begins with <svg")
