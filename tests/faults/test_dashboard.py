"""The dashboard's door and what stands behind it, at a gateway that really runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from dragoman.config import ObserveConfig
from dragoman.config.model import LimitsConfig, QuotaConfig
from dragoman.gateway.dashboard import auth
from dragoman.store import MemoryStore
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, answers, chunk, gateway, refuses, streams

OTHER = "dgm-another-key-of-sufficient-length"
JSON = {"content-type": "application/json"}
CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Paris"}}}
PATIENCE_S = 30.0


def google() -> FakeGoogle:
    return FakeGoogle(streams(HELLO))


@asynccontextmanager
async def captured(google: FakeGoogle, home: Path, **more: Any) -> AsyncIterator[Running]:
    async with gateway(google, home=str(home), observe=ObserveConfig(capture="all"), **more) as running:
        yield running


async def get(running: Running, path: str, **headers: str) -> tuple[int, Any]:
    shown = {"x-api-key": KEY} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with running.session.get(f"{running.url}/dashboard/api/{path}", headers=shown) as response:
        return response.status, await response.json()


async def rows(running: Running, many: int) -> list[dict[str, Any]]:
    """The list, once it has so many; lines are written in batches."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, body = await get(running, "requests")
            if len(body["rows"]) >= many:
                found: list[dict[str, Any]] = body["rows"]
                return found
            await asyncio.sleep(0.05)


class Visitor:
    """A browser, as far as the door can tell: it keeps cookies and says where its page comes from."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.host = URL(running.url).authority
        self.cookie = ""

    async def ask(self, method: str, path: str, **headers: str) -> aiohttp.ClientResponse:
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"sec-fetch-site": "same-origin", **({"cookie": self.cookie} if self.cookie else {}), **said}
        if method == "POST":
            sent = {**JSON, "origin": f"http://{self.host}", **sent}
        data = b"{}" if method == "POST" else None
        url = f"{self.running.url}/dashboard{path}"
        async with self.running.session.request(method, url, data=data, headers=sent) as response:
            await response.read()
        given = response.headers.get("set-cookie", "")
        if given:
            self.cookie = given.partition(";")[0]
        return response

    async def log_in(self, key: str = KEY) -> aiohttp.ClientResponse:
        return await self.ask("POST", "/api/login", authorization=f"Bearer {key}")


async def test_a_key_is_exchanged_for_a_cookie_and_the_cookie_opens() -> None:
    async with gateway(google()) as running:
        visitor = Visitor(running)
        assert (await visitor.ask("GET", "/api/me")).status == 401
        answer = await visitor.log_in()
        assert answer.status == 200
        given = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/dashboard"} <= set(given.split("; "))
        assert KEY not in given
        assert (await visitor.ask("GET", "/api/me")).status == 200


async def test_the_cookie_opens_the_dashboard_and_nothing_else() -> None:
    async with gateway(google()) as running:
        visitor = Visitor(running)
        await visitor.log_in()
        for path in ("/v1/models", "/metrics", "/v1/sessions/x/calls"):
            async with running.session.get(
                running.url + path, headers={"cookie": visitor.cookie}
            ) as response:
                assert response.status == 401, path


async def test_whoever_logs_out_is_out_also_with_a_copy_of_the_cookie() -> None:
    store = MemoryStore()
    async with gateway(google(), store=store) as running:
        visitor, thief = Visitor(running), Visitor(running)
        await visitor.log_in()
        thief.cookie = visitor.cookie
        assert (await thief.ask("GET", "/api/me")).status == 200
        gone = await visitor.ask("POST", "/api/logout")
        assert "Max-Age=0" in gone.headers["set-cookie"]
        assert (await thief.ask("GET", "/api/me")).status == 401


async def test_another_worker_or_replica_knows_the_cookie() -> None:
    """Nothing is kept in memory: the other gateway has the same keys and the same store, and that is enough."""
    store = MemoryStore()
    async with gateway(google(), store=store) as one, gateway(google(), store=store) as two:
        visitor, there = Visitor(one), Visitor(two)
        await visitor.log_in()
        value = visitor.cookie.partition("=")[2]
        there.cookie = f"{auth.cookie_name({'host': there.host})}={value}"
        assert (await there.ask("GET", "/api/me")).status == 200
        await visitor.ask("POST", "/api/logout")
        assert (await there.ask("GET", "/api/me")).status == 401


async def test_a_cookie_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.dashboard.auth.LIFETIME_S", -1)
    async with gateway(google()) as running:
        visitor = Visitor(running)
        assert (await visitor.log_in()).status == 200
        assert (await visitor.ask("GET", "/api/me")).status == 401


async def test_a_key_without_the_role_gets_no_cookie() -> None:
    async with gateway(google(), keys=(OTHER,), admin_keys=(KEY,)) as running:
        visitor = Visitor(running)
        refused = await visitor.log_in(OTHER)
        assert refused.status == 403
        assert "set-cookie" not in refused.headers
        assert (await visitor.log_in(f"AIza{'x' * 35}")).status == 401


async def test_failing_logins_are_limited_and_so_is_the_right_key_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the refusal itself would tell which key is right."""
    monkeypatch.setattr(
        "dragoman.gateway.dashboard.auth._MINUTE_S", 10**9
    )  # this one does not end in the test
    async with gateway(google()) as running:
        visitor = Visitor(running)
        statuses = [(await visitor.log_in(f"wrong-{n}")).status for n in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        limited = await visitor.log_in()
        assert limited.status == 429
        assert int(limited.headers["retry-after"]) > 0
        assert "set-cookie" not in limited.headers


async def test_a_key_without_the_role_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.dashboard.auth._MINUTE_S", 10**9)
    async with gateway(google(), keys=(OTHER,), admin_keys=(KEY,)) as running:
        visitor = Visitor(running)
        assert [(await visitor.log_in(OTHER)).status for _ in range(11)] == [403] * 10 + [429]


async def test_a_login_that_works_is_not_counted() -> None:
    async with gateway(google()) as running:
        visitor = Visitor(running)
        assert {(await visitor.log_in()).status for _ in range(15)} == {200}


@pytest.mark.parametrize(
    "strange",
    [
        {"origin": "http://localhost:1"},
        {"origin": "http://127.0.0.1"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site"},
        {"origin": "https://evil.example"},
    ],
)
async def test_no_other_page_does_anything_with_the_cookie(strange: dict[str, str]) -> None:
    async with gateway(google()) as running:
        visitor = Visitor(running)
        await visitor.log_in()
        for path in ("/api/logout", "/api/requests/req_x/replay"):
            assert (await visitor.ask("POST", path, **strange)).status == 403
        assert (await visitor.ask("GET", "/api/me")).status == 200


async def test_what_a_form_can_send_changes_nothing() -> None:
    async with gateway(google()) as running:
        visitor = Visitor(running)
        await visitor.log_in()
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
            assert (await visitor.ask("POST", "/api/logout", content_type=kind)).status == 400


async def test_a_gateway_without_keys_on_a_real_google_still_asks_for_one() -> None:
    async with gateway(google(), server={"no_auth": True}) as running:
        assert (await Visitor(running).ask("GET", "/api/requests")).status == 401


async def test_on_the_emulator_it_is_open_but_shows_nothing_of_before(tmp_path: Path) -> None:
    """Whoever shows no key sees what this gateway did, not what lies in the folder from earlier days."""
    store = MemoryStore()
    async with captured(google(), tmp_path, store=store) as before:
        await (await before.messages()).read()
        (row,) = await rows(before, 1)
        assert (await _detail(before, row["id"]))[1]["stages"]
    async with captured(google(), tmp_path, store=store, upstream={"kind": "emulator"}) as running:
        visitor = Visitor(running)
        for path in ("/api/me", "/api/requests", "/api/sessions", "/api/tools", "/api/models", "/api/cost"):
            assert (await visitor.ask("GET", path)).status == 200, path
        async with running.session.get(f"{running.url}/dashboard/api/requests") as response:
            assert (await response.json())["rows"] == []
        async with running.session.get(f"{running.url}/dashboard/api/cost") as response:
            assert (await response.json())["groups"] == [], "nor what it cost"
        assert (await get(running, "cost"))[1]["sums"]["requests"] == 1
        async with running.session.get(f"{running.url}/dashboard/api/requests/{row['id']}") as response:
            assert response.status == 404
        status, shown = await get(running, f"requests/{row['id']}")
        assert (status, shown["stages"] is not None) == (200, True)


async def test_the_page_and_its_files_are_cached_by_their_tags() -> None:
    async with gateway(google()) as running:
        for path in ("/dashboard", "/dashboard/static/app.js"):
            async with running.session.get(running.url + path) as response:
                assert response.status == 200
                assert "default-src 'none'" in response.headers["content-security-policy"]
                assert response.headers["x-content-type-options"] == "nosniff"
                tag = response.headers["etag"]
            headers = {"if-none-match": tag}
            async with running.session.get(running.url + path, headers=headers) as response:
                assert (response.status, await response.read()) == (304, b"")
        async with running.session.get(f"{running.url}/dashboard/static/../routes.py") as response:
            assert response.status == 404


async def test_a_request_is_listed_and_unfolded(tmp_path: Path) -> None:
    upstream = FakeGoogle(streams(chunk({"text": "Look"}, CALL, finish="STOP")))
    async with captured(upstream, tmp_path) as running:
        await (await running.messages(metadata={"user_id": "u_session_s1"})).read()
        (row,) = await rows(running, 1)
        assert (row["calls"], row["status"], row["dialect"]) == (["get_weather"], 200, "anthropic")
        status, shown = await _detail(running, row["id"])
        assert status == 200
        turns = [(turn["role"], turn["by"]) for turn in shown["conversation"]["turns"]]
        assert turns == [("user", "client"), ("model", "model")]
        assert shown["stages"]["upstream"][0]["answer"]["kind"] == "events"
        assert shown["replay"] == ""


async def _detail(running: Running, request_id: str) -> tuple[int, Any]:
    """With its capture, which a thread writes."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, shown = await get(running, f"requests/{request_id}")
            if status != 200 or shown["stages"] is not None:
                return status, shown
            await asyncio.sleep(0.05)


async def test_without_a_capture_there_are_facts_and_no_replay() -> None:
    async with gateway(google()) as running:
        await (await running.messages()).read()
        (row,) = await rows(running, 1)
        status, shown = await get(running, f"requests/{row['id']}")
        assert (status, shown["stages"], shown["capture"]) == (200, None, "off")
        assert "not captured" in shown["replay"]
        assert (await get(running, "requests/req_nothing"))[0] == 404


async def test_pages_of_the_list_join_without_gap() -> None:
    async with gateway(google()) as running:
        for _ in range(5):
            await (await running.messages()).read()
        whole = [row["id"] for row in await rows(running, 5)]
        seen: list[str] = []
        before = ""
        while True:
            _, page = await get(running, f"requests?limit=2&before={before}")
            seen += [row["id"] for row in page["rows"]]
            before = page["next"]
            if not before:
                break
        assert seen == whole
        assert (await get(running, "requests?before=x"))[0] == 400
        assert (await get(running, "requests?limit=0"))[0] == 400


async def test_new_requests_come_as_events_from_every_replica_and_the_stream_ends_with_the_gateway() -> None:
    store = MemoryStore()
    async with gateway(google(), store=store) as one, gateway(google(), store=store) as two:
        headers = {"x-api-key": KEY, "accept": "text/event-stream"}
        async with one.session.get(f"{one.url}/dashboard/api/live", headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert "default-src 'none'" in response.headers["content-security-policy"]
            async with asyncio.timeout(PATIENCE_S):
                await _event(response, "hello")
                for running in (one, two):
                    await (await running.messages()).read()
                    assert len(json.loads(await _event(response, "rows"))) == 1
                one.app.gateway.draining = True
                await _event(response, "bye")
                assert (await response.content.read()).strip() == b""


async def _event(response: aiohttp.ClientResponse, name: str) -> str:
    while (line := (await response.content.readline()).decode()) != f"event: {name}\n":
        assert line, "the stream ended"
    return (await response.content.readline()).decode().removeprefix("data: ")


async def test_who_looks_is_not_looked_at() -> None:
    """Otherwise an open dashboard would show nothing but itself."""
    async with gateway(google()) as running:
        for _ in range(3):
            await get(running, "requests")
        await (await running.messages()).read()
        assert len(await rows(running, 1)) == 1
        async with running.session.get(f"{running.url}/metrics", headers=running.headers) as response:
            text = await response.text()
    assert 'dragoman_requests_total{dialect="anthropic",model="gemini-flash-latest",outcome="ok"} 1' in text
    assert text.count("dragoman_requests_total{") == 1


async def test_a_replay_shows_what_is_different_and_leaves_no_trace(tmp_path: Path) -> None:
    said = (
        json.loads(chunk({"text": "One"}, finish="STOP")[6:]),
        json.loads(chunk({"text": "Two"}, finish="STOP")[6:]),
    )
    upstream = FakeGoogle(answers(said[0]), answers(said[1]))
    async with captured(upstream, tmp_path) as running:
        await (await running.messages(stream=False)).read()
        (row,) = await rows(running, 1)
        await _detail(running, row["id"])
        visitor = Visitor(running)
        await visitor.log_in()
        url = f"{running.url}/dashboard/api/requests/{row['id']}/replay"
        headers = {**JSON, "cookie": visitor.cookie, "origin": f"http://{visitor.host}"}
        async with running.session.post(url, data=b"{}", headers=headers) as response:
            replayed = await response.json()
        assert replayed["comparison"]["asked"]["verdict"] == "same"
        assert any("Two" in line for line in replayed["comparison"]["given"]["lines"])
        assert upstream.arrived[0].body == upstream.arrived[1].body
        async with running.session.post(
            url, data=b'{"model": "gemini-2.5-pro"}', headers=headers
        ) as response:
            other = await response.json()
        assert {"name": "model", "then": row["model"], "now": "gemini-2.5-pro"} in other["comparison"][
            "facts"
        ]
        async with running.session.post(
            url, data=b'{"against": "https://evil"}', headers=headers
        ) as response:
            assert response.status == 400
        await asyncio.sleep(0)
        assert len((await get(running, "requests"))[1]["rows"]) == 1


async def test_a_replay_against_the_emulator_asks_google_nothing(tmp_path: Path) -> None:
    upstream = google()
    async with captured(upstream, tmp_path) as running:
        await (await running.messages()).read()
        (row,) = await rows(running, 1)
        await _detail(running, row["id"])
        url = f"{running.url}/dashboard/api/requests/{row['id']}/replay"
        async with running.session.post(
            url, json={"against": "emulator"}, headers=running.headers
        ) as response:
            assert response.status == 200
            assert (await response.json())["comparison"]["asked"]["verdict"] == "same"
        assert len(upstream.arrived) == 1


async def test_what_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    async with captured(FakeGoogle(refuses(400, "no")), tmp_path) as running:
        url = f"{running.url}/dashboard/api/requests/req_nothing/replay"
        async with running.session.post(url, json={}, headers=running.headers) as response:
            assert response.status == 400
            assert "not captured" in await response.text()


async def test_models_and_keys_show_what_rests(tmp_path: Path) -> None:
    broken = FakeGoogle(refuses(429, "slow down"))
    keys = {"api_key": "", "api_keys": ("AIza-one-key-of-two", "AIza-another-of-two"), "max_attempts": 1}
    async with gateway(broken, upstream=keys) as running:
        await (await running.messages()).read()
        await rows(running, 1)
        _, shown = await get(running, "models")
    assert [one["name"] for one in shown["rows"]] == ["gemini-flash-latest"]
    resting = [key for key in shown["keys"] if key["rests"]]
    assert len(shown["keys"]) == 2
    assert resting
    assert all(0 < seconds <= 120 for key in resting for seconds in key["rests"].values())
    assert "AIza" not in json.dumps(shown)


async def test_limits_show_what_is_used_of_them() -> None:
    limits = LimitsConfig(key={"day": QuotaConfig(requests=5, tokens=1000)})
    async with gateway(google(), limits=limits) as running:
        await (await running.messages()).read()
        await rows(running, 1)
        _, shown = await get(running, "models")
    fuses = {one["unit"]: (one["used"], one["limit"]) for one in shown["fuses"]}
    assert fuses["requests"] == (1, 5)
    assert fuses["tokens"] == (10, 1000)
    assert {one["caller"] for one in shown["fuses"]} == {"gateway key"}


async def test_keys_have_the_names_that_usage_gives_them() -> None:
    async with gateway(google(), server={"keys": [KEY]}) as running:
        await (await running.messages()).read()
        await rows(running, 1)
        _, shown = await get(running, "cost?by=key")
    assert [one["name"] for one in shown["groups"]] == ["key 1"]
