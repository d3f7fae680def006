"""Power and clocks of recorded devices over time, as one SVG that stands alone.

A long recording is drawn as means over equal parts of its time; the line of a lost device ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from optbench.hardware.gpus.recording_file import GpuRecording
from optbench.html.standalone_charts import step_lines

# Parts of the time that are drawn at most.
MOST_PARTS = 600
PANELS = {"power_w": "power (W)", "clock_mhz": "clock (MHz)"}
BOX = re.compile(r'viewBox="0 0 (\S+) (\S+)"')


def recording_chart(recording: GpuRecording) -> str:
    """The SVG; panels without a reading are left out."""
    edges = time_parts(recording)
    panels = [
        step_lines(edges, lines, "s", words)
        for column, words in PANELS.items()
        if (lines := lines_of(recording, column, edges))
    ]
    return stacked(panels) if panels else step_lines([0.0, 1.0], {"no readings": [0.0]}, "s", "")


def time_parts(recording: GpuRecording) -> list[float]:
    """Edges of equal parts: one per tick, or as many as are drawn."""
    info, t_s = recording.info, recording.columns["t_s"]
    end_s = float(np.max(t_s, initial=0.0)) or info.period_s
    parts = min(MOST_PARTS, max(1, info.ticks - 1))
    return [end_s * k / parts for k in range(parts + 1)]


def lines_of(
    recording: GpuRecording, column: str, edges: Sequence[float]
) -> Mapping[str, list[float]]:
    """Means by part of each device that has a reading; a part without one holds the last."""
    out = {}
    for gpu in recording.info.gpus:
        mine = recording.of(gpu.index)
        known = ~np.isnan(mine[column])
        values = means(mine["t_s"][known], mine[column][known], edges)
        if values:
            out[f"GPU {gpu.index} {gpu.name}"] = values
    return out


def means(
    t_s: NDArray[np.float64], values: NDArray[np.float64], edges: Sequence[float]
) -> list[float]:
    """Means of values by part, up to the part of the last one."""
    if not len(t_s):
        return []
    part = np.clip(np.searchsorted(edges, t_s, side="right") - 1, 0, len(edges) - 2)
    out, last = [], float(values[0])
    counts = np.bincount(part)
    for count, total in zip(counts, np.bincount(part, weights=values), strict=True):
        last = float(total / count) if count else last
        out.append(last)
    return out


def stacked(panels: Sequence[str]) -> str:
    """Charts one below the other."""
    sizes = [BOX.search(panel) for panel in panels]
    widths = [float(size[1]) for size in sizes if size is not None]
    heights = [float(size[2]) for size in sizes if size is not None]
    body, y = [], 0.0
    for panel, width, height in zip(panels, widths, heights, strict=True):
        place = f'y="{y:g}" width="{width:g}" height="{height:g}" '
        body.append(panel.replace("<svg ", f"<svg {place}", 1))
        y += height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {max(widths):g} {y:g}" role="img" '
        f'aria-label="power and clocks over time">{"".join(body)}</svg>'
    )
