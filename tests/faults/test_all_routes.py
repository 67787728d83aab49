"""The door, at every path there is: the list is read off the route tables, so a new path is here by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.gateway.routes import _EXACT_ROUTES, Route, empty_object
from tests.faults.all_routes import METHODS, Sample, every_route
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, answers, chunk, gateway, streams

ROUTES = every_route()
#: Who is there, and greetings; a path that asks for no key must be named here.
PUBLIC = {"GET /", "GET /healthz", "GET /readyz", "GET /api/hello", "GET /openapi.json"}
#: The dashboard's page and its files, which know nothing of anybody.
PUBLIC |= {"GET /dashboard", "GET /dashboard/", "GET /dashboard/static/api.js"}
OTHER = "dgm-another-key-of-sufficient-length"
BODY = json.dumps({"model": "gemini-3.8-flash", "messages": [{"role": "user", "content": "hi"}]}).encode()
TYPE = {"content-type": "application/json"}
ADMIN = ("/test/admin", Route(empty_object, "openai_chat", admin=True))


def google() -> FakeGoogle:
    return FakeGoogle(answers(json.loads(chunk({"text": "Hello"}, finish="STOP")[6:])))


async def send(
    running: Running, sample: Sample, headers: dict[str, str], path: str = "", method: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """Ask as the sample does, with exactly these headers besides."""
    data = BODY if sample.takes_body else None
    async with running.session.request(
        method or sample.method,
        running.url + (path or sample.path),
        data=data,
        headers={**sample.headers, **headers},
        skip_auto_headers=() if "content-type" in headers else ("content-type",),
    ) as response:
        return response.status, {k.lower(): v for k, v in response.headers.items()}, await response.read()


def keyed(**more: str) -> dict[str, str]:
    return {"x-api-key": KEY, **TYPE, **{name.replace("_", "-"): value for name, value in more.items()}}


def test_deny_by_default_only_these_paths_ask_for_no_key() -> None:
    assert {sample.name for sample in ROUTES if sample.route.public} <= PUBLIC


@pytest.mark.parametrize(
    "strange",
    [
        pytest.param({"host": "evil.example"}, id="q8 dns rebinding"),
        pytest.param({"host": "127.0.0.1.evil.example"}, id="q8 a name that begins like ours"),
        pytest.param({"host": "evil.example:8377"}, id="q8 with our port"),
        pytest.param({"host": "[::ffff:7f00:1]"}, id="q8 another spelling"),
        pytest.param({"host": "localhost@evil.example"}, id="q8 with a user"),
        pytest.param({"host": "[::1].evil.example"}, id="q8 an address that goes on as a name"),
        pytest.param({"host": "localhost:evil.example"}, id="q8 a name where the port is due"),
        pytest.param({"host": "localhost:80:80"}, id="q8 two ports"),
        pytest.param({"host": "localhost/"}, id="q8 with a path"),
        pytest.param({"origin": "https://evil.example"}, id="q7 a web page"),
        pytest.param({"origin": "null"}, id="q7 a sandboxed frame"),
        pytest.param({"origin": "http://localhost.evil.example"}, id="q7 a page that begins like ours"),
        pytest.param({"origin": "https://evil.example/127.0.0.1"}, id="q7 a page that ends like ours"),
        pytest.param({"origin": "http://[::1].evil.example"}, id="q7 an address that goes on as a name"),
        pytest.param({"origin": "http://localhost@evil.example"}, id="q7 with a user"),
        pytest.param({"sec-fetch-site": "cross-site"}, id="q7 cross-site"),
        pytest.param({"sec-fetch-site": "same-site"}, id="q7 same-site"),
    ],
)
async def test_q7_q8_no_web_page_gets_through_at_any_path(strange: dict[str, str]) -> None:
    """With the right key, so that nothing but the page's own marks can be the reason; public paths too."""
    upstream = google()
    async with gateway(upstream) as running:
        for sample in ROUTES:
            status, headers, _ = await send(running, sample, {**keyed(), **strange})
            assert status == 403, sample.name
            assert not _cors(headers), sample.name
    assert upstream.arrived == []


async def test_q7_no_answer_to_anybody_allows_another_origin() -> None:
    async with gateway(google()) as running:
        for sample in ROUTES:
            for origin in (
                None,
                "https://evil.example",
                f"http://localhost:{running.url.rpartition(':')[2]}",
            ):
                with_origin = {"origin": origin} if origin else {}
                _, headers, _ = await send(running, sample, {**keyed(), **with_origin})
                assert not _cors(headers), sample.name


async def test_q7_a_preflight_is_never_granted() -> None:
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "x-api-key"}
    async with gateway(google()) as running:
        for sample in ROUTES:
            for origin in ("https://evil.example", "http://localhost:3000"):
                status, headers, _ = await send(running, sample, {"origin": origin, **asks}, method="OPTIONS")
                assert status >= 400, sample.name
                assert not _cors(headers), sample.name


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": KEY[:-1]},
        {"x-api-key": KEY + "x"},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {KEY}"},
        {"cookie": f"x-api-key={KEY}"},
        {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "x-original-url": "/healthz"},
    ],
)
async def test_deny_by_default_every_other_path_needs_a_key(credentials: dict[str, str]) -> None:
    upstream = google()
    async with gateway(upstream) as running:
        for sample in ROUTES:
            status, _, body = await send(running, sample, {**TYPE, **credentials})
            if sample.route.public:
                assert status == 200, sample.name
                continue
            assert status in (401, 403), sample.name
            if sample.method != "HEAD":
                assert isinstance(json.loads(body), dict | list), sample.name  # in the dialect's shape
    assert upstream.arrived == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json"]
)
async def test_q8_what_a_form_can_send_is_taken_nowhere(kind: str) -> None:
    upstream = google()
    async with gateway(upstream) as running:
        for sample in ROUTES:
            if sample.takes_body:
                status, _, _ = await send(running, sample, keyed(content_type=kind))
                assert status == 400, sample.name
    assert upstream.arrived == []


@pytest.mark.parametrize(
    "dress",
    [
        "/{}", "//{}", "/./{}", "/x/..{}", "/%2e/{}", "/..{}", "/%2F{}", "{}/", "{}//", "{}/.", "{}%00", "{}%2f..",
        "{};x", "{}%20", "/healthz/..{}", "/healthz%2f..{}", "/HEALTHZ/../{}", "{}#/healthz", "{}?/healthz",
    ],
)  # fmt: skip
async def test_q4_a_disguised_path_is_no_way_around_the_key(dress: str) -> None:
    """The decision is made on the path of the route that answers: another spelling is another path, or none."""
    upstream = google()
    async with gateway(upstream) as running:
        for sample in ROUTES:
            if sample.route.public:
                continue
            path = dress.format(sample.path if dress[0] == "{" else sample.path.removeprefix("/"))
            status, _ = await _raw(running, sample, path if path.startswith("/") else f"/{path}")
            assert status in (400, 401, 403, 404, 405), (sample.name, path)
    assert upstream.arrived == []


async def test_q4_the_host_is_no_part_of_the_path() -> None:
    """CVE-2026-48710: an address put together from the Host header led to another path than the one served."""
    async with gateway(google()) as running:
        for host in ("localhost/healthz?", "localhost/healthz#", "localhost:1/healthz"):
            for sample in ROUTES:
                if not sample.route.public:
                    status, _, _ = await send(running, sample, {**TYPE, "host": host})
                    assert status in (400, 401, 403), sample.name


async def test_q6_admin_paths_are_for_keys_with_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_EXACT_ROUTES, ("POST", ADMIN[0]), ADMIN[1])
    admin_routes = [sample for sample in every_route() if sample.route.admin]
    assert [sample for sample in admin_routes if sample.path == ADMIN[0]]
    async with gateway(google(), keys=(OTHER,), admin_keys=(KEY,)) as running:
        for sample in admin_routes:
            assert (await send(running, sample, keyed()))[0] not in (401, 403), sample.name
            for stranger, expected in (({"x-api-key": OTHER}, 403), ({"x-api-key": f"AIza{'x' * 35}"}, 401)):
                status, _, body = await send(running, sample, {**TYPE, **stranger})
                assert status == expected, sample.name
                assert sample.method == "HEAD" or b"admin" in body


async def test_q6_an_open_gateway_has_no_open_admin_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_EXACT_ROUTES, ("POST", ADMIN[0]), ADMIN[1])
    async with gateway(google(), server={"no_auth": True}) as running:
        for sample in every_route():
            if sample.route.admin:
                assert (await send(running, sample, TYPE))[0] == 401, sample.name
                assert (await send(running, sample, keyed()))[0] != 401, sample.name


@pytest.mark.parametrize(
    "claim",
    [
        {"x-dragoman-role": "admin"},
        {"x-role": "admin", "x-admin": "true"},
        {"x-dragoman-scope": "everybody"},
        {"x-user-role": "proxy_admin", "x-forwarded-user": "admin"},
    ],
)
async def test_q6_nobody_makes_himself_an_admin(
    claim: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CVE-2026-47101, -47102: fields of a request that became fields of the user."""
    monkeypatch.setitem(_EXACT_ROUTES, ("POST", ADMIN[0]), ADMIN[1])
    body = {"role": "admin", "admin": True, "caller": {"admin": True}, "user_role": "proxy_admin"}
    async with gateway(google(), keys=(OTHER,), admin_keys=(KEY,)) as running:
        for query in ("", "?admin=true&role=admin"):
            async with running.session.post(
                running.url + ADMIN[0] + query, json=body, headers={"x-api-key": OTHER, **claim}
            ) as response:
                assert response.status == 403


@pytest.mark.parametrize(
    "fields", ["api_base", "base_url", "custom_llm_provider", "api_key", "litellm_params"]
)
async def test_cve_2024_6587_no_request_says_where_the_key_is_sent(fields: str) -> None:
    """The upstream's address is a setting, whatever a body, a query or a header says."""
    thief = FakeGoogle(streams(HELLO))
    upstream = google()
    async with gateway(upstream) as running, gateway(thief) as elsewhere:
        value: Any = elsewhere.url if fields != "litellm_params" else {"api_base": elsewhere.url}
        for path, body in _GOOD.items():
            answer = await running.session.post(
                f"{running.url}{path}?{fields}={elsewhere.url}",
                json={**body, fields: value, "extra_body": {fields: value}},
                headers={**running.headers, "x-goog-api-client": "x", f"x-{fields}": elsewhere.url},
            )
            assert answer.status in (200, 400), await answer.text()
    assert thief.arrived == []


_SAY = [{"role": "user", "content": "hi"}]
_GOOD: dict[str, dict[str, Any]] = {
    "/v1/messages": {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": _SAY},
    "/v1/chat/completions": {"model": "gpt-5", "messages": _SAY},
    "/v1/responses": {"model": "gpt-5", "input": "hi"},
    "/v1/gemini": {"model": "gemini-3.8-flash", "input": "hi"},
    "/v1beta/models/gemini-3.8-flash:generateContent": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    },
    "/generateAssistantResponse": {
        "conversationState": {
            "chatTriggerType": "MANUAL",
            "currentMessage": {"userInputMessage": {"content": "hi"}},
        }
    },
}


async def test_every_other_method_is_refused_in_words() -> None:
    async with gateway(google()) as running:
        for path in {sample.path for sample in ROUTES}:
            for method in METHODS:
                if method != "HEAD" and not any(s.path == path and s.method == method for s in ROUTES):
                    async with running.session.request(
                        method, running.url + path, headers=keyed()
                    ) as response:
                        assert response.status in (404, 405), (method, path)
                        assert response.status == 404 or response.headers["allow"]


def _cors(headers: dict[str, str]) -> list[str]:
    return [name for name in headers if name.startswith("access-control-") or name == "timing-allow-origin"]


async def _raw(running: Running, sample: Sample, path: str) -> tuple[int, bytes]:
    """Without a key, and with the path exactly as it is: a client library would tidy it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
    more = "".join(f"{name}: {value}\r\n" for name, value in sample.headers.items())
    body = BODY if sample.takes_body else b""
    writer.write(
        f"{sample.method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1]), answer
