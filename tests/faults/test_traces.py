"""Traces at a real OTLP receiver: one tree for a request, in the words of OpenTelemetry's conventions."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from dragoman.config import ObserveConfig
from dragoman.observe.record import RequestRecord
from dragoman.observe.traces import route_of
from tests.faults.harness import KEY, FakeGoogle, chunk, events_of, gateway, refuses, streams
from tests.faults.test_gateway_tools import calls, settings
from tests.faults.test_gateway_tools import home as home

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HELLO = chunk({"text": "Hello"}, finish="STOP", modelVersion="gemini-2.5-flash-001")
SECRET = "my secret plan"


class Receiver:
    """What OpenTelemetry's collector would have got."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                if self.path == "/v1/traces":
                    receiver.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def root(self) -> Span:
        (found,) = [span for span in self.spans if span.kind == Span.SPAN_KIND_SERVER]
        return found

    def children(self) -> list[Span]:
        """In the order they began."""
        found = [span for span in self.spans if span.parent_span_id == self.root().span_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind or "string_value")


def attributes(span: Any) -> dict[str, Any]:
    return {item.key: plain(item.value) for item in span.attributes}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    found = Receiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=ours")
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER"):
        monkeypatch.delenv(name, raising=False)
    yield found
    found.stop()


TRACED = ObserveConfig(traces=True)


async def ask(google: FakeGoogle, headers: dict[str, str] | None = None, **top: Any) -> None:
    """One request at a gateway that stops behind it: everything is sent by then."""
    async with gateway(google, observe=TRACED, **top) as running:
        running.headers |= {
            "user-agent": "claude-cli/2.1",
            "x-claude-code-session-id": "s1",
            **(headers or {}),
        }
        async with await running.messages(messages=[{"role": "user", "content": SECRET}]) as response:
            await events_of(response)


async def test_one_tree_for_a_request(receiver: Receiver) -> None:
    await ask(FakeGoogle(refuses(503, "busy"), streams(HELLO, pause_s=0.03)))
    root = receiver.root()
    assert root.name == "POST /v1/messages"
    assert root.parent_span_id == b""
    told = attributes(root)
    assert told["http.request.method"] == "POST"
    assert told["http.route"] == told["url.path"] == "/v1/messages"
    assert told["http.response.status_code"] == 200
    assert told["user_agent.original"] == "claude-cli/2.1"
    assert told["gen_ai.conversation.id"] == "s1"
    assert told["dragoman.dialect"] == "anthropic"
    assert told["dragoman.request.id"].startswith("req_")
    assert "error.type" not in told
    assert root.status.code == Status.STATUS_CODE_UNSET
    first, second = receiver.children()
    assert first.name == second.name == "generate_content gemini-flash-latest"
    assert {span.trace_id for span in (first, second)} == {root.trace_id}
    assert {span.kind for span in (first, second)} == {Span.SPAN_KIND_CLIENT}
    assert attributes(first) == {
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.model": "gemini-flash-latest",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": "s1",
        "error.type": "overloaded",
        "http.response.status_code": 503,
        "dragoman.upstream.key": attributes(second)["dragoman.upstream.key"],
    }
    assert (first.status.code, first.status.message) == (Status.STATUS_CODE_ERROR, "overloaded")
    good = attributes(second)
    assert good["gen_ai.response.model"] == "gemini-2.5-flash-001"
    assert good["gen_ai.response.finish_reasons"] == ["STOP"]
    assert (good["gen_ai.usage.input_tokens"], good["gen_ai.usage.output_tokens"]) == (7, 3)
    assert good["gen_ai.usage.cache_read.input_tokens"] == 0
    assert second.status.code == Status.STATUS_CODE_UNSET


async def test_times_lie_inside_each_other(receiver: Receiver, home: Path) -> None:
    google = FakeGoogle(streams(calls("wait", "broken", seconds=0.05)), streams(HELLO))
    await ask(google, **settings(home))
    root = receiver.root()
    spans = {span.name: span for span in receiver.children()}
    wait, broken = spans["execute_tool wait"], spans["execute_tool broken"]
    names = [span.name for span in receiver.children()]
    assert names[0] == names[-1] == "generate_content gemini-flash-latest"
    assert sorted(names[1:-1]) == ["execute_tool broken", "execute_tool wait"]
    for span in receiver.children():
        assert root.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
    assert wait.end_time_unix_nano - wait.start_time_unix_nano >= 40_000_000
    assert wait.kind == Span.SPAN_KIND_INTERNAL
    assert attributes(wait) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "wait",
        "gen_ai.tool.type": "function",
        "dragoman.tool.result_size": 6,
    }
    assert attributes(broken)["error.type"] == "tool_error"
    assert broken.status.code == Status.STATUS_CODE_ERROR
    used = [attributes(span).get("gen_ai.usage.input_tokens") for span in receiver.children()]
    assert used == [7, None, None, 7], "each attempt has its own"


async def test_the_clients_trace_goes_on(receiver: Receiver) -> None:
    await ask(FakeGoogle(streams(HELLO)), {"traceparent": f"00-{TRACE}-{SPAN}-01"})
    root = receiver.root()
    assert root.trace_id.hex() == TRACE
    assert root.parent_span_id.hex() == SPAN


async def test_what_a_client_does_not_want_traced_is_not(receiver: Receiver) -> None:
    await ask(FakeGoogle(streams(HELLO)), {"traceparent": f"00-{TRACE}-{SPAN}-00"})
    assert receiver.spans == []


@pytest.mark.parametrize("nonsense", ["00-xyz", f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01"])
async def test_a_trace_that_is_none_is_not_taken(receiver: Receiver, nonsense: str) -> None:
    await ask(FakeGoogle(streams(HELLO)), {"traceparent": nonsense})
    assert receiver.root().parent_span_id == b""


async def test_o5_no_words_and_no_secrets(receiver: Receiver) -> None:
    answer = chunk({"text": f"{SECRET} too"}, finish="STOP")
    await ask(FakeGoogle(streams(answer)), {"user-agent": f"x/{KEY}"})
    sent = b"".join(request.SerializeToString() for request in receiver.requests)
    assert b"claude-sonnet-4-5" in sent
    for word in (SECRET, KEY, "get_weather"):
        assert word.encode() not in sent


async def test_whose_fault_it_is(receiver: Receiver) -> None:
    await ask(FakeGoogle(refuses(400, "bad")))
    root = receiver.root()
    assert attributes(root)["error.type"] == "invalid_request"
    assert root.status.code == Status.STATUS_CODE_UNSET, "the client's"


async def test_an_error_told_inside_a_stream_is_one(receiver: Receiver) -> None:
    await ask(FakeGoogle(streams(chunk({"text": "a"}), cut=True)))
    assert receiver.root().status.code == Status.STATUS_CODE_ERROR


async def test_the_standard_variables_hold(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gateway-of-the-team")
    await ask(FakeGoogle(streams(HELLO)))
    (resource,) = receiver.requests[0].resource_spans
    assert attributes(resource.resource)["service.name"] == "gateway-of-the-team"
    assert receiver.headers[0]["x-tenant"] == "ours"


async def test_without_them_the_service_is_dragoman(receiver: Receiver) -> None:
    await ask(FakeGoogle(streams(HELLO)))
    (resource,) = receiver.requests[0].resource_spans
    assert attributes(resource.resource)["service.name"] == "dragoman"


async def test_nobody_who_collects_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    await ask(FakeGoogle(streams(HELLO)))


async def test_probes_are_not_traced(receiver: Receiver) -> None:
    async with (
        gateway(FakeGoogle(), observe=TRACED) as running,
        running.session.get(running.url + "/healthz") as response,
    ):
        assert response.status == 200
    assert receiver.spans == []


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/messages", "/v1/messages"),
        ("/v1beta/models/gemini-x:generateContent", "/v1beta/models/{model}:generateContent"),
        (
            "/v1/projects/p/locations/l/publishers/google/models/m:countTokens",
            "/v1/projects/{project}/locations/{location}/publishers/google/models/{model}:countTokens",
        ),
        ("/model/us.anthropic/claude/converse-stream", "/model/{model}/converse-stream"),
        ("/v1/responses/resp_1/cancel", "/v1/responses/{id}/cancel"),
        ("/v1/responses/compact", "/v1/responses/compact"),
        ("/v1/conversations/c/items/i", "/v1/conversations/{id}/items/{id}"),
    ],
)
def test_spans_are_named_by_routes(path: str, route: str) -> None:
    record = RequestRecord(id="r", started_s=0, method="POST", path=path, client="")
    assert route_of(record) == route


def test_a_path_that_is_none_names_nothing() -> None:
    record = RequestRecord(id="r", started_s=0, method="POST", path="/anything", client="", error="not_found")
    assert route_of(record) == ""


_MISSING = """
import sys
sys.modules["opentelemetry"] = None
from dragoman.errors import ConfigError
from dragoman.observe.traces import TraceExporter
try:
    TraceExporter("gemini")
except ConfigError as error:
    print(error)
"""


def test_the_extra_is_named_where_it_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", _MISSING], capture_output=True, text=True, timeout=60)
    assert "pip install 'dragoman[otel]'" in done.stdout, done.stderr


def test_nobody_pays_who_does_not_ask() -> None:
    look = (
        "import sys, dragoman.gateway.app; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
