"""The dashboard for Grafana asks for what is measured, and for all of it."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dragoman.observe import metrics as m

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "deploy" / "grafana.json").read_text("utf-8")
)
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
METRICS = {metric.name: metric for metric in m.ALL_METRICS}
#: What Prometheus makes of a histogram.
_SUFFIXES = ("_bucket", "_sum", "_count")
_SELECTOR = re.compile(r"(dragoman_\w+)(?:\{([^}]*)\})?")


def expressions() -> list[str]:
    variables = [one["definition"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query"]
    return [target["expr"] for panel in PANELS for target in panel.get("targets", ())] + variables


def metric_of(name: str) -> m.Metric | None:
    if name in METRICS:
        return None if METRICS[name].buckets else METRICS[name]
    bare = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), "")
    found = METRICS.get(bare)
    return found if found is not None and found.buckets else None


@pytest.mark.parametrize("expression", expressions())
def test_everything_it_asks_for_is_measured(expression: str) -> None:
    found = _SELECTOR.findall(expression)
    assert found
    known: set[str] = {"le"}
    for name, matchers in found:
        metric = metric_of(name)
        assert metric is not None, name
        known |= set(metric.labels)
        for label in re.findall(r"(\w+)\s*[=!]~?\s*\"", matchers):
            assert label in metric.labels, f"{name} has no label {label}"
    for labels in re.findall(r"by \(([^)]*)\)", expression):
        assert {label.strip() for label in labels.split(",")} <= known, labels


def test_everything_that_is_measured_is_shown() -> None:
    asked = {name for expression in expressions() for name, _ in _SELECTOR.findall(expression)}
    shown = {metric.name for name in asked if (metric := metric_of(name)) is not None}
    assert shown == set(METRICS)


def test_legends_name_labels_that_are_there() -> None:
    for panel in PANELS:
        for target in panel.get("targets", ()):
            kept = {
                name.strip()
                for names in re.findall(r"by \(([^)]*)\)", target["expr"])
                for name in names.split(",")
            }
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept, panel["title"]


def test_panels_have_their_own_places_and_ids() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in PANELS)


def test_it_brings_no_data_source_of_its_own() -> None:
    for panel in PANELS:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["description"]
