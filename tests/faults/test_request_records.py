"""What is noted of a request, over real connections: facts of every one, bodies only where asked for."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import McpConfig, McpServer, ObserveConfig
from dragoman.config.model import LimitsConfig, QuotaConfig
from dragoman.observe.captures import read_capture
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.store import Charge, MemoryStore
from dragoman.store.memory import MemoryMeters
from tests.faults.harness import (
    GOOGLE_KEY,
    HELLO,
    KEY,
    FakeGoogle,
    Running,
    chunk,
    events_of,
    gateway,
    refuses,
    silence,
    streams,
)

CALL = chunk({"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}, "id": "g1"}}, finish="STOP")


class Notebook:
    """An observer that keeps all it is told."""

    def __init__(self) -> None:
        self.pages: list[tuple[RequestRecord, RequestStages | None]] = []

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        self.pages.append((record, stages))

    async def close(self) -> None:
        return


async def watched(running: Running) -> Notebook:
    notebook = Notebook()
    watch = running.app.gateway.observer_hub
    watch.observers = (*watch.observers, notebook)
    return notebook


async def page_of(notebook: Notebook) -> tuple[RequestRecord, RequestStages | None]:
    while not notebook.pages:
        await asyncio.sleep(0.01)
    return notebook.pages[-1]


async def test_the_facts_of_a_request() -> None:
    google = FakeGoogle(refuses(503, "busy"), streams(CALL, pause_s=0.05))
    async with gateway(google) as running:
        notebook = await watched(running)
        running.headers |= {"user-agent": "claude-cli/2.1 " + "x" * 200, "x-claude-code-session-id": "s1"}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "rain", "is_error": True}
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "old", "input": {}}]},
            {"role": "user", "content": [result]},
        ]
        async with await running.messages(messages=messages) as response:
            await events_of(response)
            identity = response.headers["x-dragoman-request-id"]
            assert 0 < float(response.headers["x-dragoman-overhead-ms"]) < 2_000
        record, stages = await page_of(notebook)
    assert stages is None
    assert (record.id, record.method, record.path, record.status) == (identity, "POST", "/v1/messages", 200)
    assert (record.dialect, record.session, record.stream, record.error) == ("anthropic", "s1", True, "")
    assert record.client.startswith("claude-cli/2.1 x")
    assert len(record.client) == 80
    assert (record.asked_model, record.model) == ("claude-sonnet-4-5", "gemini-flash-latest")
    assert [(one.model, one.status, one.error) for one in record.attempts] == [
        ("gemini-flash-latest", 503, "overloaded"),
        ("gemini-flash-latest", 200, ""),
    ]
    assert (record.usage.input_tokens, record.usage.output_tokens) == (7, 3)
    assert record.calls == ("get_weather",)
    assert [(one.name, one.failed, one.size) for one in record.results] == [("old", True, 4)]
    assert record.wait_ms >= 40  # of 50, as far as timers are exact
    assert record.total_ms >= record.wait_ms
    assert 0 < record.overhead_us <= (record.total_ms - record.wait_ms + 1) * 1000
    assert record.bytes_in > 100
    assert record.bytes_out > 100


async def test_the_four_stages_of_a_capture() -> None:
    google = FakeGoogle(refuses(503, "busy"), streams(HELLO))
    async with gateway(google, observe=ObserveConfig(capture="all")) as running:
        notebook = await watched(running)
        async with await running.messages() as response:
            said = await response.read()
        _, stages = await page_of(notebook)
    assert stages is not None
    assert json.loads(stages.client_request)["messages"] == [{"role": "user", "content": "hi"}]
    (first, refusal), (second, answer) = stages.upstream
    assert json.loads(first) == google.arrived[0].body
    assert json.loads(second) == google.arrived[1].body
    assert json.loads(refusal)["error"]["message"] == "busy"
    assert answer == HELLO
    assert stages.client_answer == said
    assert not stages.cut


async def test_a_long_body_is_cut_and_said_so() -> None:
    async with gateway(
        FakeGoogle(streams(HELLO)), observe=ObserveConfig(capture="all", capture_body_bytes=100)
    ) as running:
        notebook = await watched(running)
        async with await running.messages() as response:
            await response.read()
        _, stages = await page_of(notebook)
    assert stages is not None
    assert stages.cut
    assert len(stages.client_request) == len(stages.client_answer) == 100


async def test_o5_whoever_watches_is_told_no_secrets(tmp_path: Path) -> None:
    """Neither those of the gateway nor what looks like one; and what was JSON is JSON still."""
    known = "what-an-mcp-server-is-given"
    looks = f"AIza{'x' * 35}"
    answer = chunk({"text": f"{GOOGLE_KEY} {looks}"}, finish="STOP")
    servers = {"a": McpServer(command=("x",), env={"TOKEN": known})}
    async with gateway(
        FakeGoogle(streams(answer)),
        observe=ObserveConfig(capture="all"),
        mcp=McpConfig(servers=servers),
        home=str(tmp_path),
    ) as running:
        notebook = await watched(running)
        running.headers |= {"user-agent": f"tool/{KEY}"}
        content = f'{KEY} {known} {looks} "password": "hunter2"'
        async with await running.messages(messages=[{"role": "user", "content": content}]) as response:
            assert looks in await response.text()  # what the model says is the client's
        await page_of(notebook)
        async with running.session.get(f"{running.url}/nowhere/{KEY}/{looks}") as response:
            assert KEY not in await response.text()
        while len(notebook.pages) < 2:
            await asyncio.sleep(0.01)
    (kept,) = (tmp_path / "captures").iterdir()
    for told in (*(repr(record) for record, _ in notebook.pages), kept.read_text()):
        assert not any(secret in told for secret in (KEY, GOOGLE_KEY, known, looks, "hunter2"))
    captured = read_capture(kept)
    assert captured is not None
    assert "[redacted]" in captured.client_answer.text
    assert json.loads(captured.upstream[0].request.data)["contents"] == [
        {"role": "user", "parts": [{"text": '[redacted] [redacted] [redacted] "password": "[redacted]"'}]}
    ]
    assert json.loads(captured.client_request.data)["model"] == "claude-sonnet-4-5"


@pytest.mark.parametrize("broken", [True, False])
async def test_only_what_failed_is_captured_if_so_wished(broken: bool) -> None:
    google = FakeGoogle(refuses(400, "bad") if broken else streams(HELLO))
    async with gateway(google, observe=ObserveConfig(capture="errors")) as running:
        notebook = await watched(running)
        async with await running.messages() as response:
            await response.read()
        record, stages = await page_of(notebook)
    assert (stages is not None) == broken
    assert record.error == ("invalid_request" if broken else "")


async def test_a_client_that_left_is_noted_as_such() -> None:
    async with gateway(FakeGoogle(streams(chunk({"text": "a"}), pause_s=5))) as running:
        notebook = await watched(running)
        response = await running.messages()
        await response.content.read(10)
        response.close()
        record, _ = await page_of(notebook)
    assert record.left


class SlowMeters(MemoryMeters):
    """The second charge of a request, which settles it, takes a while."""

    charged: int = 0

    async def charge(self, charges: Sequence[Charge]) -> str:
        self.charged += 1
        if self.charged == 2:
            await asyncio.sleep(0.3)
        return await super().charge(charges)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_goes_with_the_last_byte_did_not_leave_and_pays(stream: bool) -> None:
    """Curl and many programs hang up as soon as they have it all."""
    store = MemoryStore()
    store.meters = SlowMeters(time.time)
    limits = LimitsConfig(key={"day": QuotaConfig(tokens=10_000)})
    used = {"promptTokenCount": 40, "candidatesTokenCount": 2}
    said = chunk({"text": "a"}, finish="STOP", usageMetadata=used)
    async with gateway(FakeGoogle(streams(said)), store=store, limits=limits) as running:
        notebook = await watched(running)
        running.headers["connection"] = "close"
        async with await running.messages(stream=stream) as response:
            await response.read()
        record, _ = await page_of(notebook)
    assert not record.left
    assert sum(amount for amount, _ in store.meters._values.values()) == 42


async def test_an_error_in_the_stream_is_an_error_though_the_status_says_200() -> None:
    async with gateway(FakeGoogle(streams(chunk({"text": "a"}), cut=True))) as running:
        notebook = await watched(running)
        async with await running.messages() as response:
            await response.read()
        record, _ = await page_of(notebook)
    assert (record.status, record.error) == (200, "overloaded")


async def test_every_answer_says_which_request_it_is_how_much_was_changed_and_how_long_it_was_ours() -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        for method, path, body in (
            ("POST", "/v1/messages", {"model": "sonnet", "max_tokens": 9, "messages": []}),
            ("POST", "/v1/messages", {"model": "sonnet", "messages": [{"role": "user", "content": "hi"}]}),
            ("GET", "/v1/models", None),
            ("GET", "/nowhere", None),
        ):
            url = running.url + path
            async with running.session.request(method, url, headers=running.headers, json=body) as response:
                told = response.headers
            assert told["x-dragoman-request-id"].startswith("req_"), path
            assert told["x-dragoman-notes"].isdecimal(), path
            assert float(told["x-dragoman-overhead-ms"]) >= 0, path


async def test_requests_without_a_model_are_noted_too() -> None:
    async with gateway(FakeGoogle(silence)) as running:
        notebook = await watched(running)
        async with running.session.get(running.url + "/nowhere", headers=running.headers) as response:
            await response.read()
        record, _ = await page_of(notebook)
    assert (record.status, record.error, record.model, record.attempts) == (404, "not_found", "", ())


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="dragoman"):
        yield caplog


@pytest.mark.parametrize(("which", "logged"), [("off", 0), ("errors", 1), ("all", 2)])
async def test_o5_one_line_a_request_and_no_words_of_anybodys(
    lines: pytest.LogCaptureFixture, which: Any, logged: int
) -> None:
    google = FakeGoogle(streams(HELLO), refuses(400, "you wrote: my secret plan"))
    async with gateway(google, observe=ObserveConfig(log=which)) as running:
        notebook = await watched(running)
        for _ in range(2):
            async with await running.messages(
                messages=[{"role": "user", "content": "my secret plan"}]
            ) as response:
                await response.read()
        while len(notebook.pages) < 2:
            await asyncio.sleep(0.01)
    assert len(lines.messages) == logged
    assert "secret plan" not in lines.text
    assert "get_weather" not in lines.text
    if logged:
        assert "failed: invalid_request (Google: HTTP 400)" in lines.messages[-1]
    if logged == 2:
        assert "7+3 tokens" in lines.messages[0]


async def test_whoever_watches_cannot_break_what_is_watched(lines: pytest.LogCaptureFixture) -> None:
    class Clumsy(Notebook):
        def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
            raise RuntimeError("oops")

    async with gateway(FakeGoogle(streams(HELLO))) as running:
        watch = running.app.gateway.observer_hub
        notebook = Notebook()
        watch.observers = (Clumsy(), notebook)
        async with await running.messages() as response:
            assert response.status == 200
            await response.read()
        await page_of(notebook)
    assert "could not be noted" in lines.text


async def test_metrics_count_what_happened_and_ask_for_the_key() -> None:
    google = FakeGoogle(refuses(503, "busy"), streams(HELLO))
    async with gateway(google) as running:
        async with await running.messages() as response:
            await response.read()
        async with running.session.get(running.url + "/metrics") as response:
            assert response.status == 401
        async with running.session.get(running.url + "/metrics", headers=running.headers) as response:
            text = await response.text()
            assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'dragoman_retries_total{model="gemini-flash-latest"} 1' in text
    assert "dragoman_open_requests 1" in text
    assert 'dragoman_cache_lookups_total{cache="anthropic messages",found="' in text
