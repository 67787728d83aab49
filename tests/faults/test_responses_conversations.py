"""`/v1/responses` with state: follow-ups by results alone, forks, conversations, and nothing mixed between them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.faults.harness import (
    HELLO,
    Arrived,
    FakeGoogle,
    Running,
    answers,
    chunk,
    events_of,
    gateway,
    refuses,
    silence,
    streams,
)

NESTED = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


CHOICE = {
    "type": "allowed_tools",
    "mode": "auto",
    "tools": [{"type": "function", "name": "get_weather"}],
}


def calls(*cities: str) -> dict[str, Any]:
    parts = [
        {"functionCall": {"name": "get_weather", "id": city.lower(), "args": {"city": city}}}
        for city in cities
    ]
    body: dict[str, Any] = json.loads(
        chunk({**parts[0], "thoughtSignature": "c2ln"}, *parts[1:], finish="STOP")[6:]
    )
    return body


DONE = json.loads(chunk({"text": "20 degrees."}, finish="STOP")[6:])


async def send(running: Running, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
    sent = {"json": body} if body is not None else {}
    async with running.session.request(
        method, running.url + path, headers=running.headers, params=query, **sent
    ) as response:
        return response.status, json.loads(await response.text())


async def ask(running: Running, **body: Any) -> dict[str, Any]:
    status, answer = await send(running, "POST", "/v1/responses", {"model": "gemini-3.8-flash", **body})
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


def results(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "20"}
        for item in answer["output"]
        if item["type"] == "function_call"
    ]


def said(body: Any) -> list[str]:
    return [part.get("text", "*") for content in body["contents"] for part in content["parts"]]


@pytest.mark.parametrize("by", ["conversation", "previous_response_id"])
async def test_results_alone_continue_with_history_tools_choice_and_ids(by: str) -> None:
    google = FakeGoogle(answers(calls("Paris", "Oslo")), answers(DONE))
    async with gateway(google) as running:
        link = {"conversation": "demo"} if by == "conversation" else {}
        first = await ask(running, input="Weather?", tools=NESTED, tool_choice=CHOICE, **link)
        link = link or {by: first["id"]}
        status, second = await send(running, "POST", "/v1/responses", {"input": results(first)[::-1], **link})
    assert status == 200
    assert second["output"][-1]["content"][0]["text"] == "20 degrees."
    assert google.arrived[1].path == google.arrived[0].path
    sent = google.arrived[1].body
    assert sent["tools"] == google.arrived[0].body["tools"]
    assert sent["toolConfig"] == google.arrived[0].body["toolConfig"]
    assert [content["role"] for content in sent["contents"]] == ["user", "model", "user"]
    assert sent["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"
    assert [part["functionResponse"]["id"] for part in sent["contents"][2]["parts"]] == ["paris", "oslo"]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}])
async def test_a_forced_call_is_not_forced_again_by_its_own_result(choice: Any) -> None:
    google = FakeGoogle(answers(calls("Paris")), answers(DONE))
    async with gateway(google) as running:
        first = await ask(running, input="?", tools=NESTED, tool_choice=choice, conversation="demo")
        await ask(running, input=results(first), conversation="demo")
    assert google.arrived[0].body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
    assert "toolConfig" not in google.arrived[1].body


async def test_a_request_without_tools_and_without_state_is_the_plain_request() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        answer = await ask(running, input="hi", store=False)
        status, _ = await send(running, "GET", f"/v1/responses/{answer['id']}")
    assert "tools" not in google.arrived[0].body
    assert status == 404


async def test_an_answer_can_be_continued_twice_and_the_branches_stay_apart() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        root = await ask(running, input="root")
        await ask(running, input="left", previous_response_id=root["id"])
        await ask(running, input="right", previous_response_id=root["id"])
    assert said(google.arrived[2].body) == ["root", "20 degrees.", "right"]


async def test_a_streamed_answer_is_kept_before_its_last_byte() -> None:
    google = FakeGoogle(streams(HELLO), answers(DONE))
    async with gateway(google) as running:
        body = {"model": "gemini-3.8-flash", "input": "one", "stream": True}
        async with running.session.post(
            running.url + "/v1/responses", json=body, headers=running.headers
        ) as response:
            last = (await events_of(response))[-1]
        assert last["type"] == "response.completed"
        status, kept = await send(running, "GET", f"/v1/responses/{last['response']['id']}")
        await ask(running, input="two", previous_response_id=last["response"]["id"])
    assert (status, kept) == (200, last["response"])
    assert said(google.arrived[1].body) == ["one", "Hello", "two"]


async def test_a_result_nobody_asked_for_is_refused_inside_a_conversation() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")
        orphan = {"type": "function_call_output", "call_id": "call_none", "output": "x"}
        status, told = await send(
            running, "POST", "/v1/responses", {"model": "m", "input": [orphan], "conversation": "demo"}
        )
    assert (status, told["error"]["param"]) == (400, "input")
    assert "call_none" in told["error"]["message"]
    assert len(google.arrived) == 1


@pytest.mark.parametrize(
    ("link", "status", "code"),
    [
        ({"previous_response_id": "resp_gone"}, 400, "previous_response_not_found"),
        ({"conversation": "conv_gone"}, 404, "not_found"),
        ({"conversation": "a", "previous_response_id": "b"}, 400, None),
        ({"conversation": 5}, 400, None),
    ],
)
async def test_a_link_that_leads_nowhere_is_told(link: dict[str, Any], status: int, code: str | None) -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        found, told = await send(running, "POST", "/v1/responses", {"model": "m", "input": "x", **link})
    assert (found, told["error"]["code"]) == (status, code)


async def test_of_two_requests_in_one_conversation_one_gets_a_409() -> None:
    google = FakeGoogle(silence)
    async with gateway(google) as running:
        slow = asyncio.ensure_future(ask(running, input="one", conversation="demo"))
        while not google.arrived:
            await asyncio.sleep(0.01)
        status, told = await send(
            running, "POST", "/v1/responses", {"model": "m", "input": "two", "conversation": "demo"}
        )
        slow.cancel()
    assert (status, told["error"]["code"]) == (409, "conversation_locked")


async def test_a_failed_request_leaves_nothing_behind() -> None:
    google = FakeGoogle(refuses(400, "no"), answers(DONE))
    async with gateway(google) as running:
        body = {"model": "m", "input": "one", "conversation": "demo"}
        assert (await send(running, "POST", "/v1/responses", body))[0] == 400
        await ask(running, input="two", conversation="demo")
    assert said(google.arrived[1].body) == ["two"]


async def test_kept_answers_are_listed_deleted_and_then_gone() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        answer = await ask(
            running, input=[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
        )
        path = f"/v1/responses/{answer['id']}"
        _, listed = await send(running, "GET", f"{path}/input_items", order="asc", limit="1")
        assert listed["data"][0]["content"] == "a"
        assert listed["has_more"] is True
        _, rest = await send(running, "GET", f"{path}/input_items", order="asc", after=listed["last_id"])
        assert [item["content"] for item in rest["data"]] == ["b"]
        assert (await send(running, "POST", f"{path}/cancel", {}))[0] == 400
        assert (await send(running, "DELETE", path))[1]["deleted"] is True
        assert (await send(running, "GET", path))[0] == 404
        assert (await send(running, "DELETE", path))[0] == 404
        status, _ = await send(
            running,
            "POST",
            "/v1/responses",
            {"model": "m", "input": "x", "previous_response_id": answer["id"]},
        )
        assert status == 400


async def test_an_item_of_a_kept_answer_may_be_named_instead_of_sent() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        first = await ask(running, input="one")
        reference = {"type": "item_reference", "id": first["output"][-1]["id"]}
        again = [{"role": "user", "content": "one"}, reference, {"role": "user", "content": "two"}]
        second = await ask(running, input=again)
        await ask(running, input="three", previous_response_id=second["id"])
        unknown = {"type": "item_reference", "id": "msg_unknown_0"}
        status, told = await send(running, "POST", "/v1/responses", {"model": "m", "input": [unknown]})
    assert said(google.arrived[1].body) == ["one", "20 degrees.", "two"]
    assert said(google.arrived[2].body) == ["one", "20 degrees.", "two", "20 degrees.", "three"]
    assert (status, told["error"]["param"]) == (400, "input[0].id")


async def test_conversations_are_made_read_changed_and_deleted() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        item = {"type": "message", "role": "user", "content": "first"}
        _, made = await send(running, "POST", "/v1/conversations", {"metadata": {"a": "b"}, "items": [item]})
        path = f"/v1/conversations/{made['id']}"
        assert made["object"] == "conversation"
        _, added = await send(
            running, "POST", f"{path}/items", {"items": [{"role": "user", "content": "second"}]}
        )
        await ask(running, input="third", conversation=made["id"])
        assert said(google.arrived[0].body) == ["first", "second", "third"]
        _, listed = await send(running, "GET", f"{path}/items", order="asc")
        assert [entry["type"] for entry in listed["data"]] == ["message"] * 4
        second = added["data"][0]["id"]
        assert (await send(running, "GET", f"{path}/items/{second}"))[1]["content"] == "second"
        assert (await send(running, "DELETE", f"{path}/items/{second}"))[1]["id"] == made["id"]
        assert (await send(running, "GET", f"{path}/items/{second}"))[0] == 404
        await ask(running, input="fourth", conversation={"id": made["id"]})
        assert said(google.arrived[1].body) == ["first", "third", "20 degrees.", "fourth"]
        _, changed = await send(running, "POST", path, {"metadata": {"c": "d"}})
        assert changed["metadata"] == {"c": "d"}
        assert (await send(running, "GET", path))[1]["metadata"] == {"c": "d"}
        assert (await send(running, "DELETE", path))[1]["deleted"] is True
        assert (await send(running, "GET", path))[0] == 404
        assert (await send(running, "DELETE", path))[0] == 404
        assert (await send(running, "POST", f"{path}/items", {"items": [item]}))[0] == 404


async def test_a_conversation_belongs_to_one_api() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        await ask(running, input="one", conversation="demo")
        body = {"model": "gemini-3.8-flash", "input": "two", "conversation": "demo"}
        status, told = await send(running, "POST", "/v1/gemini", body)
        assert (status, "held on /v1/responses" in told["error"]["message"]) == (400, True)
        body["conversation"] = "native"
        assert (await send(running, "POST", "/v1/gemini", body))[0] == 200
        status, told = await send(running, "POST", "/v1/responses", body)
        assert (status, "held on /v1/gemini" in told["error"]["message"]) == (400, True)


async def test_counting_and_compacting_know_the_conversation_too() -> None:
    google = FakeGoogle(answers(DONE), answers({"totalTokens": 42}), answers(DONE))
    async with gateway(google) as running:
        first = await ask(running, input="one")
        follow = {"model": "gemini-3.8-flash", "input": "two", "previous_response_id": first["id"]}
        _, counted = await send(running, "POST", "/v1/responses/input_tokens", follow)
        _, compacted = await send(running, "POST", "/v1/responses/compact", follow)
    assert counted == {"object": "response.input_tokens", "input_tokens": 42}
    assert compacted["object"] == "response.compaction"
    assert [item["type"] for item in compacted["output"]] == ["message", "message", "compaction"]
    assert said(google.arrived[2].body)[:3] == ["one", "20 degrees.", "two"]


async def test_codex_is_told_at_once_that_there_is_no_websocket() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        headers = {**running.headers, **upgrade, "sec-websocket-key": "x" * 22 + "=="}
        async with running.session.get(running.url + "/v1/responses", headers=headers) as response:
            assert response.status == 426


async def test_g5_codex_never_sees_a_bare_429() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "50s"}
    google = FakeGoogle(refuses(429, "slow down", detail))
    async with gateway(google, upstream={"max_attempts": 1}) as running:
        body = {"model": "m", "input": "x", "stream": True}
        async with running.session.post(
            running.url + "/v1/responses", json=body, headers=running.headers
        ) as response:
            assert response.status == 200
            last = (await events_of(response))[-1]
        whole, _ = await send(running, "POST", "/v1/responses", {"model": "m", "input": "x"})
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "rate_limit_exceeded"
    assert "try again in 50s" in last["response"]["error"]["message"]
    assert whole == 429


class Mirror(FakeGoogle):
    """Calls the first tool it is given, and then repeats the tool's name and its result."""

    def answer_to(self, arrived: Arrived) -> Any:
        name = arrived.body["tools"][0]["functionDeclarations"][0]["name"]
        last = arrived.body["contents"][-1]["parts"][0]
        answer = {"functionCall": {"name": name, "id": name, "args": {}}, "thoughtSignature": "c2ln"}
        if "functionResponse" in last:
            answer = {"text": f"{name}: {last['functionResponse']['response']['output']}"}
        return answers(json.loads(chunk(answer, finish="STOP")[6:]))


async def test_two_hundred_conversations_at_once_share_nothing() -> None:
    async def converse(running: Running, number: int) -> None:
        parameters = {"type": "object", "properties": {}}
        tool = {"type": "function", "name": f"tool_{number}", "parameters": parameters}
        first = await ask(running, input=f"say {number}", tools=[tool], conversation=f"c{number}")
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        assert call["name"] == f"tool_{number}"
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"result {number}"}
        second = await ask(running, input=[result], conversation=f"c{number}")
        assert second["output"][-1]["content"][0]["text"] == f"tool_{number}: result {number}"

    async with gateway(Mirror()) as running:
        await asyncio.gather(*(converse(running, number) for number in range(200)))
