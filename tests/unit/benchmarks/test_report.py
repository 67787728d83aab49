"""What is printed and written follows from what was measured, and nothing is hidden."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.contenders import Contender
from benchmarks.docs import BEGIN, END, describe, replace_part
from benchmarks.figures import Report, check_goals, compute_figures, peer_advantages
from benchmarks.load_generator import Measurement
from benchmarks.peers import ABSENT, PEERS
from benchmarks.report import make_report, read_json, render
from benchmarks.suite import JobFailed, Results, Row, ServerFootprint, _measured, make_job
from benchmarks.workloads import WORKLOADS

TURN = WORKLOADS["next_turn"]
PACED = WORKLOADS["paced"]


def measured(cpu_ms: float, total_ms: float = 10.0, **more: object) -> Measurement:
    values: dict[str, object] = {
        "requests": 4,
        "chunks": 0,
        "reads": 4,
        "request_bytes": 120_000,
        "cpu_s": cpu_ms * 4 / 1000,
        "reference_s": 0.004,
        "fake_cpu_s": 0.001,
        "load_cpu_s": 0.09,
        "wall_s": 0.1,
        "per_s": 40.0,
        "first_byte_s": [total_ms / 2000] * 4,
        "total_s": [total_ms / 1000] * 4,
    }
    return msgspec.convert(values | more, Measurement)


def results(**litellm: object) -> Results:
    rows = [
        Row(contender=name, workload=TURN, rounds=[one, two])
        for name, one, two in (
            ("direct", measured(0.1, 1), measured(0.1, 1)),
            ("nginx", measured(0.05, 2), measured(0.05, 2)),
            ("dragoman", measured(0.4, 3), measured(0.6, 3)),
            ("litellm", measured(30, 50, **litellm), measured(30, 50)),
            ("rosetta", measured(3, 2.5), measured(3, 2.5)),
        )
    ]
    standings = [
        ServerFootprint(
            contender=name, start_s=start, first_answer_s=start, idle_rss_kib=idle, loaded_rss_kib=99_999
        )
        for name, start, idle in (
            ("dragoman", 0.4, 46_000),
            ("litellm", 30.0, 300_000),
            ("rosetta", 0.5, 30_000),
        )
    ]
    return Results(floor="nginx", rows=rows, standings=standings, absent={"portkey": "no node here"})


@pytest.fixture(autouse=True)
def floor_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine needs no nginx to have its version in a report."""
    monkeypatch.setattr("benchmarks.report._floor_version", lambda floor: {floor: "1.22.1"})


def report(**litellm: object) -> Report:
    return make_report(results(**litellm), "python -m benchmarks")


def test_ratios_are_of_all_rounds_together() -> None:
    found = {item.contender: item for item in compute_figures(results())}
    assert found["dragoman"].cpu_ms_per_request == pytest.approx(0.5)
    assert found["dragoman"].spread_ms == pytest.approx((0.4, 0.6))
    assert found["dragoman"].times_floor == pytest.approx(10)
    assert found["dragoman"].requests_per_core_s == pytest.approx(2000)
    assert found["litellm"].times_ours == pytest.approx(60)
    assert found["litellm"].added_p50_ms == pytest.approx(49)
    assert found["litellm"].added_first_byte_ms == pytest.approx(24.5)
    assert found["nginx"].fake_busy == pytest.approx(0.01)
    assert found["nginx"].times_floor is None


def test_a_load_that_sets_the_pace_is_told() -> None:
    assert "the load generator was busy 90% of the time" in render(report())


def test_chunks_are_paid_by_the_chunk() -> None:
    rows = [
        Row(contender=name, workload=PACED, rounds=[measured(20, chunks=2008, reads=1004)])
        for name in ("direct", "nginx", "dragoman")
    ]
    *_, ours = compute_figures(Results(floor="nginx", rows=rows, standings=[], absent={}))
    assert ours.cpu_us_per_chunk == pytest.approx(20 * 4 / 2008 * 1000)
    assert ours.chunks_per_read == pytest.approx(2)


def test_aims_are_judged_beside_the_peers() -> None:
    aims = {aim.about: aim.met for aim in report().aims}
    assert aims == {
        "next_turn: CPU per request": True,
        "next_turn: CPU per request relative to nginx": True,
        "next_turn: less CPU than litellm": True,
        "next_turn: less CPU than rosetta": False,
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [("clients_32", [("1.6 ×", False)]), ("crowd", [("1.6 ×", False), ("2.0 ×", True)])],
)
def test_two_workers_are_held_against_one(name: str, found: list[tuple[str, bool]]) -> None:
    """By the clock only where the load takes little of the machine."""
    workload = WORKLOADS[name]
    rows = [
        Row(contender=name, workload=workload, rounds=[measured(cpu_ms, per_s=per_s)])
        for name, cpu_ms, per_s in (
            ("direct", 1, 100.0),
            ("nginx", 1, 100.0),
            ("dragoman", 1, 50.0),
            ("dragoman-2", 1.25, 100.0),
        )
    ]
    figures = compute_figures(Results(floor="nginx", rows=rows, standings=[], absent={}))
    aims = check_goals(figures, [workload], "nginx")
    assert [(aim.found, aim.met) for aim in aims] == found


def test_wherever_a_peer_is_better_it_is_said() -> None:
    better = report().better
    assert "rosetta, next_turn: p50, ms: 2.50 against 3.00" in better
    assert "rosetta: idle memory, MB: 29.30 against 44.92" in better
    assert not [line for line in better if "CPU" in line or line.startswith(("litellm", "nginx"))]


def test_a_wrong_answer_has_no_ratio_meets_no_aim_and_is_better_at_nothing() -> None:
    wrong = report(wrong=2, why="calls: none")
    ratios = next(line for line in render(wrong).splitlines() if line.startswith("  next_turn "))
    assert ratios.split() == ["next_turn", "0.10", "1.00", "wrong", "6.00"]
    assert "WRONG, not counted: 2 wrong, the first: calls: none" in render(wrong)
    assert "next_turn: less CPU than litellm" not in [aim.about for aim in wrong.aims]
    cheap = [
        msgspec.structs.replace(item, cpu_ms_per_request=0.01) if item.contender == "litellm" else item
        for item in wrong.figures
    ]
    better = peer_advantages(cheap, [], "nginx")
    assert not [line for line in better if line.startswith("litellm")]


def test_an_oddity_counts_and_is_told() -> None:
    odd = report(oddities=["ends with 'end_turn'"])
    assert "ends with 'end_turn'" in render(odd)
    assert "litellm: ends with 'end_turn' (next_turn)" in describe(odd)
    assert "(60 ×)" in describe(odd)


def test_who_did_not_take_part_is_named_with_the_reason() -> None:
    for text in (render(report()), describe(report())):
        assert "portkey: no node here" in text
        for name, why in ABSENT.items():
            assert f"{name}: {why}" in text


def test_who_fails_once_is_not_asked_again() -> None:
    contender = Contender(
        name="ccr", url="http://127.0.0.1:1", styles=("anthropic",), pid=1, start_s=0, idle_rss_kib=0
    )
    job = msgspec.structs.replace(make_job(contender, contender, TURN, "s"), pids=[])
    asked: list[object] = []

    def ask(job: object) -> Measurement:
        asked.append(job)
        raise JobFailed("it hung up")

    row = Row(contender="ccr", workload=TURN, rounds=[])
    row = _measured(_measured(row, job, ask), job, ask)
    assert (row.failure, len(asked)) == ("it hung up", 1)


def test_a_kept_run_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(msgspec.json.encode(report()))
    kept = read_json(path)
    assert describe(kept) == describe(msgspec.json.decode(path.read_bytes(), type=Report))
    assert kept.settings["litellm"] == PEERS["litellm"].settings


def test_only_the_part_between_the_marks_is_written() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    written = replace_part(page, "new")
    assert written == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_part(written, "new") == written
    for page in ("nothing", f"before\n{BEGIN}\nold\n"):
        with pytest.raises(ValueError, match="no part"):
            replace_part(page, "new")


def test_the_page_has_the_part_that_a_run_writes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "performance.md").read_text("utf-8")
    assert replace_part(page, "x").count("x") >= 1
