"""The plots of docs/performance.md, drawn with matplotlib (the extra `bench`)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from benchmarks.figures import OURS, Figures, Report
from benchmarks.report import short

mpl.use("Agg")


_COLOURS = {
    OURS: "#1a73e8",
    "nginx": "#9aa0a6",
    "splice": "#9aa0a6",
    "litellm": "#e37400",
    "ccr": "#d93025",
    "rosetta": "#188038",
    "portkey": "#9334e6",
}
_SHOWN = (
    "next_turn",
    "new_conversation",
    "small",
    "big",
    "paced",
    "burst",
    "openai_chat_turn",
)
_BAR = 0.8
_SAME_BYTES = {
    "svg.hashsalt": "dragoman",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(report: Report, folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
    with mpl.rc_context(_SAME_BYTES):
        return [
            *_save(_cpu(report), folder / "performance-cpu"),
            *_save(_weight(report), folder / "performance-weight"),
        ]


def _save(picture: Any, path: Path) -> list[Path]:
    """Save without a date, so that the same run gives the same bytes."""
    paths = [path.with_suffix(".svg"), path.with_suffix(".png")]
    picture.savefig(paths[0], metadata={"Date": None})
    picture.savefig(paths[1], dpi=120, metadata={"Software": None})
    plt.close(picture)
    return paths


def _cpu(report: Report) -> Any:
    """Draw bars on a logarithmic scale, one group per workload, without wrong answers."""
    found = {(item.contender, item.workload): item for item in report.figures if not item.fault}
    workloads = [name for name in _SHOWN if (OURS, name) in found]
    names = [name for name in _COLOURS if any((name, workload) in found for workload in workloads)]
    picture, axes = plt.subplots(figsize=(9, 1.2 + 0.95 * len(workloads)), layout="constrained")
    height = _BAR / max(1, len(names))
    for index, name in enumerate(names):
        bars = [(place, found.get((name, workload))) for place, workload in enumerate(workloads)]
        _draw_bars(axes, name, [(place + index * height, item) for place, item in bars if item], height)
    axes.set_yticks(
        [place + _BAR / 2 - height / 2 for place in range(len(workloads))],
        [_label(found[OURS, workload]) for workload in workloads],
    )
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"CPU of the process tree per request, ms (logarithmic; one run, {report.when[:10]})")
    axes.legend(loc="lower right", frameon=False)
    return picture


def _draw_bars(axes: Any, name: str, bars: Sequence[tuple[float, Figures]], height: float) -> None:
    drawn = axes.barh(
        [place for place, _ in bars],
        [item.cpu_ms_per_request for _, item in bars],
        height,
        label=name,
        color=_COLOURS[name],
    )
    axes.bar_label(drawn, [short(item.cpu_ms_per_request) for _, item in bars], padding=2, fontsize=7)


def _label(item: Figures) -> str:
    size, _, rest = item.about.partition(", ")
    return "\n".join([f"{item.workload} ({size})", *textwrap.wrap(rest, 36)])


def _weight(report: Report) -> Any:
    """Draw four small plots: latency with one client, first byte, memory, start time."""
    latency = {
        item.contender: item for item in report.figures if item.workload == "latency" and not item.fault
    }
    stream = {
        item.contender: item
        for item in report.figures
        if item.workload == "latency_stream" and not item.fault
    }
    weighed = {one.contender: one for one in report.standings}
    panels: tuple[tuple[str, dict[str, float]], ...] = (
        ("added latency, p50, ms\n(120 KB, one client)", {n: i.added_p50_ms for n, i in latency.items()}),
        ("added time to the first byte, ms\n(stream)", {n: i.added_first_byte_ms for n, i in stream.items()}),
        ("memory after the load, MB", {n: one.loaded_rss_kib / 1024 for n, one in weighed.items()}),
        ("start to first answer, s", {n: one.first_answer_s for n, one in weighed.items()}),
    )
    picture, places = plt.subplots(1, len(panels), figsize=(11, 3), layout="constrained")
    for axes, (title, values) in zip(places, panels, strict=True):
        names = [name for name in _COLOURS if name in values]
        drawn = axes.barh(names, [values[name] for name in names], color=[_COLOURS[name] for name in names])
        axes.bar_label(drawn, [short(values[name]) for name in names], padding=2, fontsize=7)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.set_title(title, fontsize=9)
    return picture
