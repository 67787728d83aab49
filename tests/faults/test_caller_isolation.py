"""Several callers at one gateway: nothing that was said or thought for one reaches another."""

from __future__ import annotations

import json
from typing import Any

from tests.faults.harness import KEY, FakeGoogle, Running, answers, chunk, gateway

OTHER = "dgm-another-key-of-sufficient-length"
SIGNED = json.loads(chunk({"text": "Hello!", "thoughtSignature": "c2VjcmV0"}, finish="STOP")[6:])


async def say(running: Running, key: str, path: str, body: Any) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}"}
    async with running.session.post(running.url + path, json=body, headers=headers) as response:
        return response.status, await response.json()


async def test_a_thought_comes_back_to_its_caller_and_to_nobody_who_says_the_same_words() -> None:
    """A signature is the model's thinking, and that may be about instructions another must not learn of."""
    question = {"role": "user", "content": "hi"}
    again = [question, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "more"}]
    google = FakeGoogle(answers(SIGNED))
    async with gateway(google, keys=(KEY, OTHER)) as running:
        for key, messages in ((KEY, [question]), (KEY, again), (OTHER, again)):
            await say(
                running, key, "/v1/chat/completions", {"model": "gemini-3.8-flash", "messages": messages}
            )
    mine, other = (arrived.body["contents"][1]["parts"] for arrived in google.arrived[1:])
    assert mine == [{"text": "Hello!", "thoughtSignature": "c2VjcmV0"}]
    assert other == [{"text": "Hello!"}]


async def test_answers_conversations_and_items_of_another_caller_do_not_exist() -> None:
    google = FakeGoogle(answers(SIGNED))
    async with gateway(google, keys=(KEY, OTHER)) as running:
        ask = {"model": "gemini-3.8-flash", "input": "mine", "conversation": "demo"}
        _, answer = await say(running, KEY, "/v1/responses", ask)
        reference = {"type": "item_reference", "id": answer["output"][0]["id"]}
        for stolen in ({"previous_response_id": answer["id"]}, {"input": [reference]}):
            body = {"model": "gemini-3.8-flash", "input": "x", **stolen}
            assert (await say(running, OTHER, "/v1/responses", body))[0] == 400
        assert (await say(running, OTHER, "/v1/responses", {**ask, "input": "yours"}))[0] == 200
    assert [content["parts"] for content in google.arrived[-1].body["contents"]] == [[{"text": "yours"}]]
