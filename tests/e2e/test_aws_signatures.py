"""The real gateway verifies what aws-sdk-js signs, over HTTP/1.1 and over HTTP/2 with prior knowledge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import INSTALL_S, RUN_S, install
from tests.e2e.fake_google import KEY, Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

VERSION = "5.7.5"
PROGRAM = Path(__file__).with_name("aws_signed.mjs")
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE//////////token"
WRONG = "a-secret-that-nobody-knows"


def case(**changes: Any) -> dict[str, Any]:
    """A request of Claude's kind; the gate is the same for all."""
    asked = {
        "model": "gemini-3.8-flash",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "say hello"}],
    }
    return {
        "http": 1,
        "method": "POST",
        "path": "/v1/messages",
        "query": {},
        "headers": {"content-type": "application/json"},
        "body": json.dumps(asked),
        "secret": GATEWAY_KEY,
        "token": None,
        "checksum": True,
        **changes,
    }


NATIVE = {
    "path": "/v1beta/models/gemini-3.8-flash%3AgenerateContent",
    "query": {"b c": "ä&=/", "a": "~!'()*", "B": ""},
    "body": json.dumps({"contents": [{"role": "user", "parts": [{"text": "say hello"}]}]}),
}
TRUE: dict[str, dict[str, Any]] = {
    "plain": {},
    "no checksum header": {"checksum": False},
    "temporary credentials": {"token": TOKEN},
    "an encoded path and an odd query": NATIVE,
    "a stream": {"body": case()["body"].replace('"max_tokens"', '"stream": true, "max_tokens"')},
    "white space in a header": {"headers": {"content-type": "application/json", "x-a": " a   b "}},
    "no content type": {"headers": {}},
    "a list": {"method": "GET", "path": "/v1/models", "query": {"limit": "3"}, "body": ""},
}


def send(gateway: Gateway, cases: list[dict[str, Any]]) -> list[tuple[int, str]]:
    folder = install(f"signature-v4-{VERSION}", f"@smithy/signature-v4@{VERSION}")
    done = subprocess.run(
        ["node", str(PROGRAM), gateway.url, str(folder)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(answer["status"], answer["text"]) for answer in json.loads(done.stdout)]


@pytest.mark.parametrize("version", [1, 2])
def test_it_is_believed_with_the_gateway_key_and_with_no_other(version: int, gateway: Gateway) -> None:
    true = [case(http=version, **changes) for changes in TRUE.values()]
    answers = send(gateway, true + [one | {"secret": WRONG} for one in true])
    for name, (status, text) in zip(TRUE, answers, strict=False):
        assert (name, status) == (name, 200), text
        assert "hello" in text or name == "a list"
    for name, (status, text) in zip(TRUE, answers[len(TRUE) :], strict=True):
        assert (name, status) == (name, 401), text
        assert "secret access key must be the gateway key" in text


@pytest.mark.parametrize("version", [1, 2])
def test_its_proof_is_neither_logged_nor_sent_on(version: int, gateway: Gateway, google: Google) -> None:
    cases = [case(http=version, token=TOKEN, secret=secret) for secret in (GATEWAY_KEY, WRONG)]
    assert [status for status, _ in send(gateway, cases)] == [200, 401]
    [exchanged] = google._loopback.seen()
    assert exchanged.asked.headers["x-goog-api-key"] == KEY
    upstream = repr(exchanged.asked)
    for secret in (GATEWAY_KEY, WRONG, TOKEN, "AKIDEXAMPLE", "AWS4-HMAC", "x-amz-"):
        assert secret not in upstream
        assert secret not in gateway.log()


def test_with_the_emulator_behind_every_signature_passes(tmp_path: Path) -> None:
    embedded = Gateway(tmp_path / "home")
    embedded.start()
    try:
        answers = send(embedded, [case(http=version, secret=WRONG) for version in (1, 2)])
    finally:
        embedded.stop()
    assert [status for status, _ in answers] == [200, 200]
