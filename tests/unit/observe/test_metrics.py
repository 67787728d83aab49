"""Numbers: correct over several workers, bounded, and in Prometheus' own format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe import metrics as m
from dragoman.observe.metric_files import MetricFiles
from dragoman.observe.record import Attempt, ClientToolResult, RequestRecord
from dragoman.observe.request_metrics import RequestMetrics
from dragoman.store import OTHER_LABEL

RECORD = RequestRecord(
    id="r",
    started_s=0,
    method="POST",
    path="/v1/messages",
    client="c",
    dialect="anthropic",
    model="gemini-x",
    status=200,
    usage=Usage(input_tokens=10, cached_tokens=4, output_tokens=5, thought_tokens=2),
    notes=(Note("sentinel", "a", "b"), Note("dropped", "a", "b")),
    calls=("Read", "Read"),
    own_calls=("look",),
    results=(ClientToolResult("Read", True, 3), ClientToolResult("", False, 3)),
    attempts=(
        Attempt(model="gemini-x", status=503, error="overloaded"),
        Attempt(model="gemini-x", status=200),
    ),
    first_byte_ms=40,
    wait_ms=95,
    total_ms=100,
    overhead_us=4_700,
    bytes_in=7,
    bytes_out=9,
)


def counted(*records: RequestRecord) -> str:
    registry = m.MetricRegistry()
    observer = RequestMetrics(registry)
    for record in records:
        observer.on_request_end(record, None)
    return m.render(registry.snapshot()).decode()


def test_a_request_in_numbers() -> None:
    text = counted(RECORD)
    for line in (
        'dragoman_requests_total{dialect="anthropic",model="gemini-x",outcome="ok"} 1',
        'dragoman_request_seconds_bucket{dialect="anthropic",le="0.05"} 0',
        'dragoman_request_seconds_bucket{dialect="anthropic",le="0.1"} 1',
        'dragoman_request_seconds_bucket{dialect="anthropic",le="+Inf"} 1',
        'dragoman_request_seconds_sum{dialect="anthropic"} 0.1',
        'dragoman_request_seconds_count{dialect="anthropic"} 1',
        'dragoman_overhead_seconds_sum{dialect="anthropic"} 0.0047',
        'dragoman_overhead_seconds_bucket{dialect="anthropic",le="0.002"} 0',
        'dragoman_overhead_seconds_bucket{dialect="anthropic",le="0.005"} 1',
        'dragoman_tokens_total{model="gemini-x",kind="cached"} 4',
        'dragoman_tokens_total{model="gemini-x",kind="input"} 6',
        'dragoman_tokens_total{model="gemini-x",kind="output"} 3',
        'dragoman_tokens_total{model="gemini-x",kind="thought"} 2',
        'dragoman_upstream_attempts_total{model="gemini-x",outcome="overloaded"} 1',
        'dragoman_upstream_attempts_total{model="gemini-x",outcome="ok"} 1',
        'dragoman_retries_total{model="gemini-x"} 1',
        'dragoman_notes_total{kind="sentinel"} 1',
        'dragoman_tool_calls_total{tool="Read",by="client"} 2',
        'dragoman_tool_calls_total{tool="look",by="gateway"} 1',
        'dragoman_tool_results_total{tool="Read",by="client",outcome="failed"} 1',
        'dragoman_tool_results_total{tool="-",by="client",outcome="ok"} 1',
        'dragoman_bytes_total{direction="in"} 7',
    ):
        assert line in text.splitlines(), line


def test_how_a_request_ended() -> None:
    failed = msgspec.structs.replace(RECORD, error="overloaded", attempts=())
    left = msgspec.structs.replace(RECORD, left=True, model="", attempts=())
    text = counted(failed, left)
    assert 'outcome="overloaded"} 1' in text
    assert 'model="-",outcome="left"} 1' in text
    assert "retries" not in text


def test_labels_of_clients_cannot_grow_without_end() -> None:
    registry = m.MetricRegistry()
    for number in range(700):
        registry[m.TOOL_CALLS][f"tool{number}", "client"].value += 1
    series = [one for one in registry.snapshot() if one.metric == m.TOOL_CALLS.name]
    assert len(series) == 501
    assert next(one.value for one in series if one.labels == (OTHER_LABEL, OTHER_LABEL)) == 200


def test_a_large_sum_loses_no_digits() -> None:
    """Six digits of $12,345.678901 would hide every request that costs less than a cent."""
    registry = m.MetricRegistry()
    registry[m.COST]["x",].value += 12_345.678901
    registry[m.DURATION]["d",].observe(1_234_567.125)
    text = m.render(registry.snapshot()).decode()
    assert 'dragoman_cost_usd_total{model="x"} 12345.678901' in text
    assert 'dragoman_request_seconds_sum{dialect="d"} 1234567.125' in text


def test_labels_are_escaped() -> None:
    registry = m.MetricRegistry()
    registry[m.RETRIES]['a"b\\c\nd',].value += 1
    assert 'model="a\\"b\\\\c\\nd"' in m.render(registry.snapshot()).decode()


def test_workers_are_added_up() -> None:
    registries = [m.MetricRegistry() for _ in range(3)]
    for number, registry in enumerate(registries):
        registry[m.RETRIES]["x",].value += number
        registry[m.DURATION]["d",].observe(number)
    merged = m.merge([registry.snapshot() for registry in registries])
    text = m.render(merged).decode()
    assert 'dragoman_retries_total{model="x"} 3' in text
    assert 'dragoman_request_seconds_count{dialect="d"} 3' in text
    assert 'dragoman_request_seconds_sum{dialect="d"} 3' in text


_WORKER = """
import sys
from pathlib import Path
from dragoman.observe import metrics as m
from dragoman.observe.metric_files import MetricFiles
registry = m.MetricRegistry()
files = MetricFiles(Path(sys.argv[1]), registry)
registry[m.RETRIES]["x",].value += 5
registry[m.OPEN][()].value = 3
files.write()
"""


def test_a_worker_that_ended_still_counts_and_no_counter_goes_back(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _WORKER, str(tmp_path)], check=True)
    registry = m.MetricRegistry()
    files = MetricFiles(tmp_path, registry)
    registry[m.RETRIES]["x",].value += 1
    shown = {one.metric: one.value for one in files.all()}
    assert shown == {m.RETRIES.name: 11}, "what a dead worker had open is not open"
    (tmp_path / "999999999.json").write_text("half")
    assert {one.metric: one.value for one in files.all()} == shown
    files.write()
    files.write()
    assert sum(path.suffix == ".json" for path in tmp_path.iterdir()) == 3


def test_a_worker_with_the_number_of_its_predecessor_forgets_nothing(tmp_path: Path) -> None:
    """In a container the processes have the same numbers after every restart."""
    for run in range(3):
        registry = m.MetricRegistry()
        files = MetricFiles(tmp_path, registry)
        registry[m.RETRIES]["x",].value += 5
        files.write()
        assert [one.value for one in files.all()] == [5 * (run + 1)]


def test_labels_of_those_who_ended_cannot_grow_without_end(tmp_path: Path) -> None:
    for run in range(4):
        registry = m.MetricRegistry()
        files = MetricFiles(tmp_path, registry)
        for number in range(400):
            registry[m.TOOL_CALLS][f"tool {run} {number}", "client"].value += 1
        files.write()
    ended = msgspec.json.decode((tmp_path / "ended.json").read_bytes(), type=list[m.Series])
    assert len(ended) == 501
    assert sum(one.value for one in files.all()) == 1600


def test_a_folder_that_cannot_be_used_costs_the_siblings_numbers_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("in the way")
    registry = m.MetricRegistry()
    files = MetricFiles(tmp_path / "f", registry)
    registry[m.RETRIES]["x",].value += 1
    files.write()
    assert [one.value for one in files.all()] == [1]
