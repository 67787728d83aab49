"""Conversations the gateway keeps, while its process is killed, started again and run twice."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.emulator import emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import HELLO, FakeGoogle, answers, chunk, streams
from tests.faults.harness import gateway as in_process

Json = dict[str, Any]

SIGNATURE = "EjQKMgEMOdbHO0Gd+c9Mxk4ELwPGbpCEcp2mFfYYLix2UVtBH3fL8GECc4+JITVnHF4qZDsA"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
DECLARED = [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}]
CHOICE = {
    "type": "allowed_tools",
    "mode": "auto",
    "tools": [{"type": "function", "name": "get_weather"}],
}
CALL_PARTS: list[Json] = [
    {"functionCall": {"name": "get_weather", "args": {"city": city}, "id": city.lower()}}
    for city in ("Paris", "Oslo")
]
CALL_PARTS[0]["thoughtSignature"] = SIGNATURE
CALLS = json.loads(chunk(*CALL_PARTS, finish="STOP")[6:])
DONE = json.loads(chunk({"text": "20 degrees."}, finish="STOP")[6:])


@asynccontextmanager
async def processes(home: Path, google: FakeGoogle, number: int = 1) -> AsyncIterator[list[Gateway]]:
    """So many gateways with one state folder, all on the same Google."""
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    gateways = [Gateway(home, url) for _ in range(number)]
    try:
        for gateway in gateways:
            await asyncio.to_thread(gateway.start)
        yield gateways
    finally:
        for gateway in gateways:
            gateway.kill()
        server.close()


async def send(gateway: Gateway, path: str, body: Json | None = None) -> tuple[int, Any]:
    """A POST, or a GET if there is nothing to send."""
    async with aiohttp.ClientSession(headers={"x-api-key": GATEWAY_KEY}) as session:
        method = "GET" if body is None else "POST"
        async with session.request(method, gateway.url + path, json=body) as response:
            return response.status, json.loads(await response.text())


async def ask(gateway: Gateway, **body: Any) -> Any:
    status, answer = await send(gateway, "/v1/responses", {"model": "gemini-3.8-flash", **body})
    assert status == 200, answer
    return answer


def results(answer: Json) -> list[Json]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "20"}
        for item in answer["output"]
        if item["type"] == "function_call"
    ]


def said(body: Any) -> list[str]:
    return [part.get("text", "*") for content in body["contents"] for part in content["parts"]]


def let_leases_end(home: Path) -> None:
    """As if the half minute had passed for which a dead process holds up its conversation."""
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("UPDATE lease SET until = 0")


@pytest.mark.parametrize("link", ["conversation", "previous_response_id"])
async def test_a11_a_call_that_waits_for_its_result_survives_kill_dash_nine(
    tmp_path: Path, link: str
) -> None:
    google = FakeGoogle(answers(CALLS), answers(DONE))
    async with processes(tmp_path / "home", google) as (gateway,):
        named = {"conversation": "demo"} if link == "conversation" else {}
        first = await ask(gateway, input="Weather?", tools=TOOLS, tool_choice=CHOICE, **named)
        gateway.kill()
        await asyncio.to_thread(gateway.restart)
        second = await ask(gateway, input=results(first)[::-1], **(named or {link: first["id"]}))
    assert second["output"][-1]["content"][0]["text"] == "20 degrees."
    before, after = (arrived.body for arrived in google.arrived)
    assert (after["tools"], after["toolConfig"]) == (before["tools"], before["toolConfig"])
    assert after["contents"][0] == before["contents"][0]
    assert after["contents"][1]["parts"] == CALL_PARTS
    ids = [part["functionResponse"]["id"] for part in after["contents"][2]["parts"]]
    assert ids == ["paris", "oslo"]


async def test_a11_so_does_one_in_geminis_own_words(tmp_path: Path) -> None:
    google = FakeGoogle(answers(CALLS), answers(DONE))
    config = {"functionCallingConfig": {"mode": "VALIDATED"}}
    ours = {"model": "gemini-3.8-flash", "conversation": "demo"}
    async with processes(tmp_path / "home", google) as (gateway,):
        asked = {**ours, "input": "Weather?", "tools": DECLARED, "toolConfig": config}
        _, first = await send(gateway, "/v1/gemini", asked)
        gateway.kill()
        await asyncio.to_thread(gateway.restart)
        calls = [part["functionCall"] for part in first["candidates"][0]["content"]["parts"]]
        parts = [
            {"functionResponse": {"name": call["name"], "id": call["id"], "response": {"c": 20}}}
            for call in calls
        ]
        status, second = await send(
            gateway, "/v1/gemini", {**ours, "input": [{"role": "user", "parts": parts}]}
        )
    assert status == 200, second
    assert second["candidates"][0]["content"]["parts"] == [{"text": "20 degrees."}]
    after = google.arrived[1].body
    assert (after["tools"], after["toolConfig"]) == (DECLARED, config)
    assert after["contents"][1]["parts"] == CALL_PARTS


async def test_a_stream_cut_by_kill_dash_nine_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    slow = streams(chunk({"text": "half an "}), *[chunk({"text": "answer "})] * 100, pause_s=0.2)
    google = FakeGoogle(answers(DONE), slow, answers(DONE))
    home = tmp_path / "home"
    async with processes(home, google) as (gateway,):
        await ask(gateway, input="one", conversation="demo")
        with pytest.raises(aiohttp.ClientPayloadError):
            await _read_and_kill(gateway, {"input": "two", "conversation": "demo"})
        await asyncio.to_thread(gateway.restart)
        body = {"model": "m", "input": "three", "conversation": "demo"}
        status, told = await send(gateway, "/v1/responses", body)
        assert (status, told["error"]["code"]) == (409, "conversation_locked")
        let_leases_end(home)
        await ask(gateway, input="three", conversation="demo")
        _, items = await send(gateway, "/v1/conversations/demo/items?order=asc")
    assert said(google.arrived[2].body) == ["one", "20 degrees.", "three"]
    assert [item["role"] for item in items["data"]] == ["user", "assistant"] * 2


async def _read_and_kill(gateway: Gateway, body: Json) -> None:
    """The client sees the first words, then its gateway dies."""
    async with aiohttp.ClientSession(headers={"x-api-key": GATEWAY_KEY}) as session:
        url = gateway.url + "/v1/responses"
        async with session.post(url, json={"model": "m", "stream": True, **body}) as response:
            async for line in response.content:
                if b"half an" in line:
                    gateway.kill()


async def test_two_processes_share_a_conversation_turn_by_turn(tmp_path: Path) -> None:
    google = FakeGoogle(answers(CALLS), answers(DONE))
    async with processes(tmp_path / "home", google, number=2) as (left, right):
        first = await ask(left, input="Weather?", tools=TOOLS, conversation="demo")
        await ask(right, input=results(first), conversation="demo")
        await ask(left, input="And tomorrow?", conversation="demo")
        last = await ask(right, input="Thanks.", conversation="demo")
        status, kept = await send(left, f"/v1/responses/{last['id']}")
    assert (status, kept) == (200, last)
    sent = google.arrived[3].body
    assert sent["tools"] == google.arrived[0].body["tools"]
    assert sent["contents"][1]["parts"] == CALL_PARTS
    assert said(sent)[-4:] == ["20 degrees.", "And tomorrow?", "20 degrees.", "Thanks."]


async def test_of_two_requests_at_two_processes_one_gets_an_answer_and_the_other_a_409(
    tmp_path: Path,
) -> None:
    let_go = asyncio.Event()

    async def wait_and_answer(writer: asyncio.StreamWriter) -> None:
        await let_go.wait()
        await answers(DONE)(writer)

    google = FakeGoogle(wait_and_answer, answers(DONE))
    async with processes(tmp_path / "home", google, number=2) as gateways:
        asking = {
            asyncio.ensure_future(
                send(gateway, "/v1/responses", {"model": "m", "input": word, "conversation": "demo"})
            ): word
            for gateway, word in zip(gateways, ("left", "right"), strict=True)
        }
        (loser,), (winner,) = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        status, told = loser.result()
        assert (status, told["error"]["code"]) == (409, "conversation_locked")
        let_go.set()
        assert (await winner)[0] == 200
        await ask(gateways[0], input="again", conversation="demo")
    assert said(google.arrived[1].body) == [asking[winner], "20 degrees.", "again"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/gemini"])
async def test_who_has_the_answer_may_go_on_at_once(
    monkeypatch: pytest.MonkeyPatch, path: str, stream: bool
) -> None:
    """Another process, or the same one after kill -9, must not find a lease of an answer that arrived."""
    async with in_process(FakeGoogle(streams(HELLO) if stream else answers(DONE))) as running:
        turns = running.app.gateway.store.turns
        release = turns.release_lease

        async def slowly(name: str, holder: str) -> None:
            await asyncio.sleep(0.3)
            await release(name, holder)

        monkeypatch.setattr(turns, "release_lease", slowly)
        body = {"model": "gemini-3.8-flash", "input": "x", "conversation": "demo", "stream": stream}
        for _ in range(3):
            async with await running.post(path, **body) as response:
                assert response.status == 200, await response.text()
                await response.read()


AT_ONCE = 16


class Crowd:
    """Many clients of one gateway; each tries again when the gateway dies under its request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.answered = 0
        self.half = asyncio.Event()
        self.back = asyncio.Event()
        self.interrupted: set[int] = set()
        self._most = asyncio.Semaphore(AT_ONCE)

    async def converse(self, number: int, most: int) -> None:
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tool = {"type": "function", "name": f"tool_{number}", "parameters": parameters}
        wish = f'use tool_{number} with {{"n": {number}}}'
        first = await self._ask(number, input=wish, tools=[tool])
        self.answered += 1
        if self.answered == most // 2:
            self.half.set()
        if number % 2:  # the odd ones have an open call when the gateway dies, or get it afterwards
            await self.back.wait()
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        assert (call["name"], json.loads(call["arguments"])) == (f"tool_{number}", {"n": number})
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"result_{number}"}
        second = await self._ask(number, input=[result])
        if number not in self.interrupted:
            assert second["output"][-1]["content"][0]["text"] == f"tool_{number} returned: result_{number}"
        _, items = await send(self._gateway, f"/v1/conversations/c{number}/items?order=asc")
        for seen in (first, second, items):
            assert set(re.findall(r"(?:tool|result)_(\d+)", json.dumps(seen))) <= {str(number)}
        if number not in self.interrupted:
            kinds = [item["type"] for item in items["data"]]
            assert kinds == ["message", "function_call", "function_call_output", "message"]

    async def _ask(self, number: int, **body: Any) -> Any:
        async with self._most:
            try:
                return await ask(self._gateway, conversation=f"c{number}", **body)
            except aiohttp.ClientConnectorError:
                pass  # nobody was there to hear it
            except aiohttp.ClientError:
                self.interrupted.add(number)
        await self.back.wait()
        return await ask(self._gateway, conversation=f"c{number}", **body)


async def test_two_hundred_conversations_lose_nothing_and_share_nothing_when_the_gateway_is_killed(
    tmp_path: Path,
) -> None:
    most, home = 200, tmp_path / "home"
    with emulator_process(tmp_path) as emulator:
        gateway = Gateway(home, emulator.url)
        await asyncio.to_thread(gateway.start)
        try:
            crowd = Crowd(gateway)
            talking = [asyncio.ensure_future(crowd.converse(number, most)) for number in range(most)]
            await crowd.half.wait()
            gateway.kill()
            let_leases_end(home)
            await asyncio.to_thread(gateway.restart)
            crowd.back.set()
            await asyncio.gather(*talking)
        finally:
            gateway.kill()
        assert set(emulator.accepted()) == {"POST /v1beta/models/gemini-3.8-flash:generateContent"}
    assert len(crowd.interrupted) <= AT_ONCE
