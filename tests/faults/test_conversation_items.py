"""Conversations over HTTP that are looked at, edited and partly forgotten: whatever is done, they can go on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.store import StoreUnavailable
from tests.faults.harness import FakeGoogle, answers, chunk, gateway, silence, streams
from tests.faults.test_responses_conversations import DONE, NESTED, ask, calls, results, said, send

ITEM = {"type": "message", "role": "user", "id": "msg_mine", "content": "mine"}


async def test_what_gemini_holds_is_not_edited_in_another_dialect() -> None:
    """An item of the other dialect in the line would make both refuse the conversation for ever."""
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        native = {"model": "gemini-3.8-flash", "input": "one", "conversation": "native"}
        assert (await send(running, "POST", "/v1/gemini", native))[0] == 200
        path = "/v1/conversations/native/items"
        for method, where, body in (
            ("POST", path, {"items": [ITEM]}),
            ("GET", path, None),
            ("GET", f"{path}/x", None),
            ("DELETE", f"{path}/x", None),
        ):
            status, told = await send(running, method, where, body)
            assert (status, "/v1/gemini" in told["error"]["message"]) == (400, True), method
        assert (await send(running, "POST", "/v1/gemini", {**native, "input": "two"}))[0] == 200
    assert said(google.arrived[1].body) == ["one", "20 degrees.", "two"]


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ({"type": "item_reference", "id": "msg_unknown"}, "items[0].id"),
        ({"type": "no_such_item"}, "items[0]"),
        ({"role": "alien", "content": "x"}, "items[0].role"),
        ({"role": "user", "content": [{"type": "no_such_part"}]}, "items[0].content[0]"),
        ({"type": "compaction_trigger"}, "items"),
    ],
)
async def test_an_item_that_would_spoil_every_later_request_is_refused_at_once(item: Any, where: str) -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        status, told = await send(running, "POST", "/v1/conversations", {"items": [item]})
        assert (status, told["error"]["param"]) == (400, where)
        _, made = await send(running, "POST", "/v1/conversations", {})
        path = f"/v1/conversations/{made['id']}/items"
        assert (await send(running, "POST", path, {"items": [item]}))[0] == 400
        assert (await send(running, "POST", path, {"items": []}))[0] == 400
        await ask(running, input="two", conversation=made["id"])
    assert said(google.arrived[0].body) == ["two"]


async def test_g3_a_compaction_is_asked_for_once() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")
        compacted = await ask(running, input=[{"type": "compaction_trigger"}], conversation="demo")
        assert [item["type"] for item in compacted["output"]] == ["compaction"]
        after = await ask(running, input="two", conversation="demo")
        _, listed = await send(running, "GET", f"/v1/responses/{compacted['id']}/input_items")
    assert [item["type"] for item in after["output"]] == ["message"]
    assert listed["data"] == []
    read = said(google.arrived[2].body)
    assert "one" not in read
    assert read[-1] == "two"
    assert any("20 degrees." in text for text in read)  # the summary, as the model wrote it


async def test_a_conversations_name_has_an_end() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        for path in ("/v1/responses", "/v1/gemini"):
            body = {"model": "gemini-3.8-flash", "input": "x", "conversation": "c" * 513}
            assert (await send(running, "POST", path, body))[0] == 400


async def test_an_item_that_was_removed_may_be_added_again() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        _, made = await send(running, "POST", "/v1/conversations", {"items": [ITEM]})
        path = f"/v1/conversations/{made['id']}/items"
        assert (await send(running, "DELETE", f"{path}/msg_mine"))[0] == 200
        assert (await send(running, "POST", path, {"items": [ITEM]}))[0] == 200
        await ask(running, input="two", conversation=made["id"])
    assert said(google.arrived[0].body) == ["mine", "two"]


async def test_a_conversation_survives_the_deletion_of_one_of_its_answers() -> None:
    google = FakeGoogle(answers(DONE))
    async with gateway(google) as running:
        first = await ask(running, input="one", conversation="demo")
        path = f"/v1/responses/{first['id']}"
        assert (await send(running, "DELETE", path))[0] == 200
        assert (await send(running, "GET", path))[0] == 404
        assert (await send(running, "GET", f"{path}/input_items"))[0] == 404
        assert (await send(running, "DELETE", path))[0] == 404
        await ask(running, input="two", conversation="demo")
    assert said(google.arrived[1].body) == ["one", "20 degrees.", "two"]


async def test_a_later_answer_can_be_read_when_an_earlier_one_is_deleted() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        first = await ask(running, input="one")
        second = await ask(running, input="two", previous_response_id=first["id"])
        await send(running, "DELETE", f"/v1/responses/{first['id']}")
        status, shown = await send(running, "GET", f"/v1/responses/{second['id']}")
    assert (status, shown) == (200, second)


async def test_looking_does_not_wait_for_a_running_answer_nor_hold_one_up() -> None:
    google = FakeGoogle(answers(DONE), silence)
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")
        body = {"model": "gemini-3.8-flash", "input": "two", "conversation": "demo"}
        busy = asyncio.ensure_future(send(running, "POST", "/v1/responses", body))
        while len(google.arrived) < 2:
            await asyncio.sleep(0.01)
        status, listed = await send(running, "GET", "/v1/conversations/demo/items")
        assert (status, len(listed["data"])) == (200, 2)
        assert (await send(running, "POST", "/v1/responses", body))[0] == 409
        busy.cancel()


async def test_counting_begins_no_conversation() -> None:
    google = FakeGoogle(answers({"totalTokens": 42}))
    async with gateway(google) as running:
        body = {"model": "gemini-3.8-flash", "input": "one", "conversation": "new"}
        assert (await send(running, "POST", "/v1/responses/input_tokens", body))[1]["input_tokens"] == 42
        assert (await send(running, "GET", "/v1/conversations/new"))[0] == 404
        body["conversation"] = "conv_unknown"
        assert (await send(running, "POST", "/v1/responses/input_tokens", body))[0] == 404


async def test_what_is_no_answer_is_not_read_as_one() -> None:
    async with gateway(FakeGoogle(answers(DONE))) as running:
        answer = await ask(running, input="one")
        path = f"/v1/responses/{answer['id']}"
        status, told = await send(running, "GET", path, stream="true")
        assert (status, told["error"]["param"]) == (400, "stream")
        _, made = await send(running, "POST", "/v1/conversations", {"items": [ITEM]})
        turns = running.app.gateway.store.turns
        edits = [own for _, own in turns._turns if own.startswith("edit_")]  # type: ignore[attr-defined]
        assert len(edits) == 1, made
        assert (await send(running, "GET", f"/v1/responses/{edits[0]}"))[0] == 404


@pytest.mark.parametrize("repeated", [True, False])
async def test_tools_that_come_with_every_turn_are_kept_once(repeated: bool) -> None:
    """A line is read with every turn: what it repeats would be read over and over."""
    google = FakeGoogle(answers(calls("Paris")), answers(calls("Oslo")), answers(DONE))
    again: dict[str, Any] = {"tools": NESTED} if repeated else {}
    async with gateway(google) as running:
        first = await ask(running, input="?", tools=NESTED)
        second = await ask(running, input=results(first), previous_response_id=first["id"], **again)
        await ask(running, input=results(second), previous_response_id=second["id"])
        kept = await running.app.gateway.store.turns.chain(_only_scope(running), second["id"])
    assert [turn.data.count(b"Weather of a city") for turn in kept] == [1, 0]
    assert google.arrived[2].body["tools"] == google.arrived[0].body["tools"]


def _only_scope(running: Any) -> str:
    (scope,) = {scope for scope, _ in running.app.gateway.store.turns._turns}
    return str(scope)


async def test_a_client_that_leaves_mid_stream_frees_its_conversation_and_nothing_is_kept() -> None:
    google = FakeGoogle(streams(chunk({"text": "Hel"}), pause_s=60), answers(DONE))
    async with gateway(google) as running:
        body = {"model": "gemini-3.8-flash", "input": "one", "conversation": "demo", "stream": True}
        response = await running.post("/v1/responses", **body)
        await response.content.readuntil(b"output_text.delta")
        response.close()
        await google.hung_up.wait()
        await ask(running, input="two", conversation="demo")
    assert said(google.arrived[1].body) == ["two"]


@pytest.mark.parametrize(
    "step", ["acquire_lease", "conversation", "put_conversation", "chain", "save", "release_lease"]
)
async def test_a_store_that_fails_at_any_step_is_told_and_the_conversation_goes_on_later(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("the disk is full")

    google = FakeGoogle(answers(DONE))
    name = "new" if step == "put_conversation" else "demo"
    body = {"model": "gemini-3.8-flash", "input": "two", "conversation": name}
    async with gateway(google) as running:
        await ask(running, input="one", conversation="demo")
        with monkeypatch.context() as broken:
            broken.setattr(running.app.gateway.store.turns, step, fail)
            status, _ = await send(running, "POST", "/v1/responses", body)
        assert status == (200 if step == "release_lease" else 503)
        if step != "release_lease":  # a lease nobody gave back ends by itself
            await ask(running, **body)
            said_before = [] if name == "new" else ["one", "20 degrees."]
            assert said(google.arrived[-1].body) == [*said_before, "two"]
