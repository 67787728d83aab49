"""Faults on demand: so many times, by header, and on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from dragoman.cli.main import main
from dragoman.emulator.director import ApiRequest, ResponsePlan
from dragoman.emulator.faults import FAULT_HEADER, FAULTS, FaultDirector, make_fault, parse_scheduled_fault
from dragoman.emulator.http_messages import Wait
from dragoman.emulator.model import ModelReply
from dragoman.emulator.service import EmulatorService, HttpRequest
from dragoman.errors import ConfigError
from tests.unit.emulator.builders import MODEL, Json, hello, send, text


def service(*plan: str, inner: Any = None) -> EmulatorService:
    return EmulatorService("test", FaultDirector(inner, [parse_scheduled_fault(planned) for planned in plan]))


def statuses(asked: EmulatorService, count: int, **options: Any) -> list[int]:
    return [send(hello(), service=asked, **options).status for _ in range(count)]


def with_header(value: str, asked: EmulatorService | None = None) -> tuple[int, Json]:
    question = HttpRequest(
        method="POST",
        path=f"/v1beta/models/{MODEL}:generateContent",
        body=json.dumps(hello()).encode(),
        headers={FAULT_HEADER: value},
    )
    answer = (asked or service()).handle(question)
    return answer.status, json.loads(answer.body)


def test_a_fault_without_a_number_is_for_ever_and_for_counting_too() -> None:
    asked = service("overloaded")
    assert statuses(asked, 3) == [503] * 3
    assert statuses(asked, 1, method="countTokens") == [503]


def test_a_fault_with_a_number_is_for_the_first_generate_requests() -> None:
    asked = service("overloaded*2")
    assert statuses(asked, 2, method="countTokens") == [200, 200]
    assert statuses(asked, 3) == [503, 503, 200]


def test_each_fault_counts_for_itself() -> None:
    asked = service("overloaded*1", "slow_first_byte=0.5 * 2")
    answers = [send(hello(), service=asked) for _ in range(3)]
    assert [answer.status for answer in answers] == [503, 200, 200]
    assert [answer.actions_before_head for answer in answers] == [(Wait(0.5),), (Wait(0.5),), ()]


def test_a_request_that_was_refused_does_not_use_up_a_fault() -> None:
    asked = service("overloaded*1")
    wrong = {**hello(), "generationConfig": {"temperature": 99}}
    assert send(wrong, service=asked).status == 400
    assert statuses(asked, 2) == [503, 200]


def test_a_header_asks_for_one_request_only() -> None:
    asked = service()
    assert with_header("overloaded", asked)[0] == 503
    assert with_header("slow_first_byte=0, internal", asked)[0] == 500
    assert with_header("", asked)[0] == 200
    assert statuses(asked, 1) == [200]


def test_a_header_that_is_wrong_is_refused_with_a_hint() -> None:
    status, body = with_header("overloadd")
    assert status == 400
    assert body["error"]["message"] == (
        "x-emulator-fault: there is no fault 'overloadd'; did you mean overloaded?"
    )


class OwnReplyDirector:
    """A director that says something of its own, slowly, and hears of refusals."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def plan_response(self, asked: ApiRequest) -> ResponsePlan:
        del asked
        slow = make_fault("slow_first_byte", 1)
        return ResponsePlan(
            reply=ModelReply(text="mine", thought=""), faults=[slow], on_rejected=self.heard.append
        )


def test_the_director_behind_it_keeps_its_say() -> None:
    inner = OwnReplyDirector()
    asked = service("slow_first_byte=2*1", inner=inner)
    first, second = (send(hello(), service=asked) for _ in range(2))
    assert (first.actions_before_head, second.actions_before_head) == ((Wait(1), Wait(2)), (Wait(1),))
    assert text(json.loads(first.body)) == "mine"
    assert send({**hello(), "generationConfig": {"temperature": 99}}, service=asked).status == 400
    assert len(inner.heard) == 1


@pytest.mark.parametrize("written", ["overloaded*0", "*3", "overloaded*x", "overloaded*-1"])
def test_a_plan_that_is_written_wrong_is_refused(written: str) -> None:
    with pytest.raises(ConfigError):
        parse_scheduled_fault(written)


def test_the_list_of_faults_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emulator", "--list-faults"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [line.split()[0].partition("=")[0] for line in lines] == list(FAULTS)
    assert "  slow_stream=0.5 seconds " in "\n".join(lines)


def test_a_wrong_fault_on_the_command_line_is_one_sentence_with_a_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["emulator", "--fault", "overloadd"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.endswith("--fault: there is no fault 'overloadd'; did you mean overloaded?")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_command_fails_on_demand_and_stops_cleanly(stop: signal.Signals) -> None:
    code = "import sys; from dragoman.cli.main import main; sys.exit(main(sys.argv[1:]))"
    options = ["--port", "0", "--verbose", "--fault", "overloaded*1", "--seed", "s"]
    command = [sys.executable, "-X", "dev", "-c", code, "emulator", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().split()[2].rstrip(":")
        assert [_status(base_url, ""), _status(base_url, ""), _status(base_url, "internal")] == [
            503,
            200,
            500,
        ]
        process.send_signal(stop)
        _, complained = process.communicate(timeout=30)
    assert process.returncode == 0
    path = f"/v1beta/models/{MODEL}:generateContent"
    assert complained.splitlines() == [f"dragoman: POST {path} {status}" for status in (503, 200, 500)]


def _status(base_url: str, fault: str) -> int:
    address = f"{base_url}/v1beta/models/{MODEL}:generateContent"
    request = urllib.request.Request(address, json.dumps(hello()).encode(), {FAULT_HEADER: fault})
    try:
        with urllib.request.urlopen(request) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
