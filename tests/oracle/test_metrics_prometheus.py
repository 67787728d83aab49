"""prometheus_client's parser reads /metrics as a Prometheus server would."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from dragoman.observe import metrics as m

LABEL = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['"', "\\", "\n", "\\n", '\\"', '"}', "a,b", "\r", "\r\n", "{}", "\u2028", " "]
)
NUMBER = st.integers(0, 10**12) | st.floats(0, 1e12)


def parsed(registry: m.MetricRegistry) -> dict[str, Family]:
    text = m.render(registry.snapshot()).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize("metric", m.ALL_METRICS, ids=lambda metric: metric.name)
def test_every_family_has_its_help_type_and_labels(metric: m.Metric) -> None:
    registry = m.MetricRegistry()
    counter = registry[metric][tuple(f"the {name}" for name in metric.labels)]
    if metric.buckets:
        counter.observe(0.3)
    else:
        counter.value = 7
    # The parser names a counter's family without the suffix that its samples have.
    (family,) = parsed(registry).values()
    assert family.name == (metric.name.removesuffix("_total") if metric.kind == "counter" else metric.name)
    assert (family.documentation, family.type) == (metric.help, metric.kind)
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        assert labels == {name: f"the {name}" for name in metric.labels}
    if not metric.buckets:
        assert [(sample.name, sample.value) for sample in family.samples] == [(metric.name, 7)]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.tuples(LABEL, LABEL), NUMBER, min_size=1, max_size=5))
def test_labels_and_values_come_back_as_they_were(values: dict[tuple[str, str], float]) -> None:
    registry = m.MetricRegistry()
    for labels, value in values.items():
        registry[m.TOOL_CALLS][labels].value = value
    (family,) = parsed(registry).values()
    read = {(sample.labels["tool"], sample.labels["by"]): sample.value for sample in family.samples}
    assert read == values


@settings(max_examples=100, deadline=None)
@given(LABEL, st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_buckets_of_a_histogram_are_cumulative(label: str, seconds: list[float]) -> None:
    registry = m.MetricRegistry()
    for one in seconds:
        registry[m.DURATION][label,].observe(one)
    samples = parsed(registry)[m.DURATION.name].samples
    assert all(sample.labels["dialect"] == label for sample in samples)
    buckets = {float(sample.labels["le"]): sample.value for sample in samples if "le" in sample.labels}
    assert list(buckets) == [*m.DURATION.buckets, float("inf")]
    assert buckets == {bound: sum(one <= bound for one in seconds) for bound in buckets}
    assert all(before <= after for before, after in pairwise(buckets.values()))
    rest = {sample.name: sample.value for sample in samples if "le" not in sample.labels}
    assert rest == {
        f"{m.DURATION.name}_sum": pytest.approx(sum(seconds)),
        f"{m.DURATION.name}_count": len(seconds),
    }
