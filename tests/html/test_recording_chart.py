"""The picture of a recording: means over parts of the time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from optbench.hardware.gpus.recording_file import COLUMNS, GpuRecording, RecordedGpu, RecordingInfo
from optbench.html.recording_chart import MOST_PARTS, means, recording_chart, time_parts

GPU = RecordedGpu(0, "GPU-0", "A100", "575", 0.0, {}, None, {})
INFO = RecordingInfo("2026", "here", 1.0, 3.0, 3.0, "finished", 4, 0, 0.0, {}, (GPU,))


def recording(t_s: list[float], power_w: list[float], info: RecordingInfo = INFO) -> GpuRecording:
    columns = {name: np.full(len(t_s), np.nan) for name in COLUMNS}
    columns |= {"gpu": np.zeros(len(t_s), int), "t_s": np.array(t_s), "power_w": np.array(power_w)}
    return GpuRecording(info, columns)


def test_parts_hold_means_and_a_line_ends_with_its_device() -> None:
    # Parts [0, 1), [1, 2), [2, 3), [3, 4]: 10 and 20 in the first, none in the second, 40 in the
    # third, the last one for a device that is lost by then.
    t_s, values = np.array([0.0, 0.5, 2.5]), np.array([10.0, 20.0, 40.0])
    assert means(t_s, values, [0, 1, 2, 3, 4]) == [15.0, 15.0, 40.0]
    assert means(t_s[:0], values[:0], [0, 1]) == []


def test_the_picture_is_xml_with_a_panel_per_column_that_was_read() -> None:
    picture = recording_chart(recording([0, 1, 2, 3], [40, 250, 250, 40]))
    assert len(ET.fromstring(picture).findall("{http://www.w3.org/2000/svg}svg")) == 1
    assert "power (W)" in picture and "clock (MHz)" not in picture and "GPU 0 A100" in picture
    nothing = replace(INFO, gpus=())
    assert "no readings" in recording_chart(recording([], [], nothing))


def test_a_long_recording_has_a_limited_number_of_parts() -> None:
    long = replace(INFO, ticks=100_000)
    edges = time_parts(recording([0.0, 3.0], [1.0, 1.0], long))
    assert len(edges) == MOST_PARTS + 1 and edges[-1] == 3.0
    assert time_parts(recording([0, 1, 2, 3], [1] * 4)) == [0, 1, 2, 3]
