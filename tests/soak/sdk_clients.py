"""The vendors' SDKs as clients of the gateway: each has the scripted conversation and checks it.

An SDK's own exception is a correctly reported error; every other exception is a violation of the protocol.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import boto3
import botocore.exceptions
import openai
from botocore.config import Config
from google import genai
from google.genai import errors as genai_errors

from tests.chaos.scripted_turns import TOOL, Json, Said
from tests.e2e.gateway import GATEWAY_KEY

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
QUESTION = "Where are they?"
_TIMEOUT_S = 60.0


class ToldFailure(Exception):
    """`response.failed`, for which OpenAI's SDK has no exception."""


#: What a library says when the other side told an error, or was gone.
REFUSALS = (
    ToldFailure,
    anthropic.APIError,
    openai.APIError,
    genai_errors.APIError,
    botocore.exceptions.BotoCoreError,
    botocore.exceptions.ClientError,
)

#: Runs the two turns with one model, and returns the text and calls of each.
Talk = Callable[[str], Awaitable[list[Said]]]


class Libraries:
    """One client of each SDK, as an application would have it."""

    def __init__(self, url: str) -> None:
        more: Any = {"max_retries": 0, "timeout": _TIMEOUT_S}
        self._anthropic = anthropic.AsyncAnthropic(base_url=url, api_key=GATEWAY_KEY, **more)
        self._openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=GATEWAY_KEY, **more)
        options: Any = {"base_url": url, "timeout": int(_TIMEOUT_S * 1000)}
        self._genai = genai.Client(api_key=GATEWAY_KEY, http_options=options)
        self._amazon: Any = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id="gateway",
            aws_secret_access_key=GATEWAY_KEY,
            config=Config(
                retries={"total_max_attempts": 1}, read_timeout=_TIMEOUT_S, max_pool_connections=32
            ),
        )
        self.talks: dict[str, Talk] = {
            "anthropic, stream": lambda model: self._messages(model, stream=True),
            "anthropic, whole": lambda model: self._messages(model, stream=False),
            "chat, stream": lambda model: self._chat(model, stream=True),
            "chat, whole": lambda model: self._chat(model, stream=False),
            "responses, stream": lambda model: self._responses(model, stream=True),
            "responses, whole": lambda model: self._responses(model, stream=False),
            "responses, kept": lambda model: self._responses(model, stream=True, kept=True),
            "gemini, stream": lambda model: self._gemini(model, stream=True),
            "gemini, whole": lambda model: self._gemini(model, stream=False),
            "converse, stream": lambda model: asyncio.to_thread(self._converse, model, stream=True),
            "converse, whole": lambda model: asyncio.to_thread(self._converse, model, stream=False),
        }

    async def close(self) -> None:
        await self._anthropic.close()
        await self._openai.close()
        await self._genai.aio.aclose()
        self._genai.close()
        self._amazon.close()
        # botocore leaves the connections of broken answers to the garbage collector, which may not run before the
        # gateway's descriptors are counted: the gateway itself closes idle connections after two minutes.
        gc.collect()

    async def _messages(self, model: str, *, stream: bool) -> list[Said]:
        tools: Any = [{"name": TOOL, "input_schema": SCHEMA}]
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        said: list[Said] = []
        for _ in range(2):
            asked: Any = {"model": model, "max_tokens": 2000, "messages": messages, "tools": tools}
            if stream:
                async with self._anthropic.messages.stream(**asked) as events:
                    answer = await events.get_final_message()
            else:
                answer = await self._anthropic.messages.create(**asked)
            assert answer.stop_reason in ("tool_use", "end_turn"), answer.stop_reason
            uses = [block for block in answer.content if block.type == "tool_use"]
            text = "".join(block.text for block in answer.content if block.type == "text")
            said.append((text, [(use.name, dict(use.input)) for use in uses]))
            results = [{"type": "tool_result", "tool_use_id": use.id, "content": "here"} for use in uses]
            messages += [
                {
                    "role": "assistant",
                    "content": [block.model_dump(exclude_none=True) for block in answer.content],
                },
                {"role": "user", "content": results},
            ]
        return said

    async def _chat(self, model: str, *, stream: bool) -> list[Said]:
        tools: Any = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        said: list[Said] = []
        for _ in range(2):
            asked: Any = {"model": model, "messages": messages, "tools": tools}
            if stream:
                async with self._openai.chat.completions.stream(**asked) as events:
                    answer: Any = await events.get_final_completion()
            else:
                answer = await self._openai.chat.completions.create(**asked)
            (choice,) = answer.choices
            calls = choice.message.tool_calls or []
            assert choice.finish_reason == ("tool_calls" if calls else "stop"), choice.finish_reason
            found = [(call.function.name, json.loads(call.function.arguments)) for call in calls]
            said.append((choice.message.content or "", found))
            messages.append(choice.message.to_dict(mode="json"))
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "here"} for call in calls]
        return said

    async def _responses(self, model: str, *, stream: bool, kept: bool = False) -> list[Said]:
        tools: Any = [{"type": "function", "name": TOOL, "parameters": SCHEMA, "strict": False}]
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        more: Json = {"conversation": f"soak-{model}"} if kept else {"store": False}
        said: list[Said] = []
        for _ in range(2):
            asked: Any = {"model": model, "input": items, "tools": tools, **more}
            if stream:
                async with self._openai.responses.stream(**asked) as events:
                    seen: list[Any] = [event async for event in events]
                answer: Any = seen[-1].response  # its helper for the last one knows no failure
            else:
                answer = await self._openai.responses.create(**asked)
            if answer.status == "failed":
                raise ToldFailure(answer.error.message)
            assert answer.status == "completed", answer.status
            calls = [item for item in answer.output if item.type == "function_call"]
            said.append((answer.output_text, [(call.name, json.loads(call.arguments)) for call in calls]))
            results = [
                {"type": "function_call_output", "call_id": call.call_id, "output": "here"} for call in calls
            ]
            items = (
                results
                if kept
                else [*items, *(item.to_dict(mode="json") for item in answer.output), *results]
            )
        return said

    async def _gemini(self, model: str, *, stream: bool) -> list[Said]:
        declared = [{"name": TOOL, "parameters_json_schema": SCHEMA}]
        config: Any = {
            "tools": [{"function_declarations": declared}],
            "automatic_function_calling": {"disable": True},
        }
        contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
        said: list[Said] = []
        for _ in range(2):
            if stream:
                chunks = [
                    chunk
                    async for chunk in await self._genai.aio.models.generate_content_stream(
                        model=model, contents=contents, config=config
                    )
                ]
            else:
                chunks = [
                    await self._genai.aio.models.generate_content(
                        model=model, contents=contents, config=config
                    )
                ]
            candidates: list[Any] = [one for chunk in chunks for one in chunk.candidates or ()]
            assert candidates[-1].finish_reason == "STOP", candidates[-1].finish_reason
            parts = [part for one in candidates if one.content for part in one.content.parts or ()]
            calls = [part.function_call for part in parts if part.function_call]
            text = "".join(part.text or "" for part in parts if not part.thought)
            said.append((text, [(call.name, dict(call.args)) for call in calls]))
            results = [
                {"function_response": {"name": call.name, "id": call.id, "response": {"output": "here"}}}
                for call in calls
            ]
            contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
        return said

    def _converse(self, model: str, *, stream: bool) -> list[Said]:
        spec = {"toolSpec": {"name": TOOL, "inputSchema": {"json": SCHEMA}}}
        messages: list[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]
        said: list[Said] = []
        for _ in range(2):
            asked: Any = {"modelId": model, "messages": messages, "toolConfig": {"tools": [spec]}}
            if stream:
                content, reason = _collect(self._amazon.converse_stream(**asked)["stream"])
            else:
                answer = self._amazon.converse(**asked)
                content, reason = answer["output"]["message"]["content"], answer["stopReason"]
            assert reason in ("tool_use", "end_turn"), reason
            uses = [block["toolUse"] for block in content if "toolUse" in block]
            text = "".join(block.get("text", "") for block in content)
            said.append((text, [(use["name"], use["input"]) for use in uses]))
            results = [
                {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": "here"}]}} for use in uses
            ]
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
        return said


def _collect(stream: Any) -> tuple[list[Json], str]:
    """Converse's events as one message, as every user of boto3 writes it."""
    blocks: dict[int, Json] = {}
    reason = ""
    for event in stream:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            _add(blocks, event["contentBlockDelta"])
        elif "messageStop" in event:
            reason = event["messageStop"]["stopReason"]
    assert reason, "no messageStop"
    content = [blocks[index] for index in sorted(blocks)]
    for block in content:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return content, reason


def _add(blocks: dict[int, Json], event: Json) -> None:
    delta, index = event["delta"], event["contentBlockIndex"]
    if "toolUse" in delta:
        blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
    elif "text" in delta:
        block = blocks.setdefault(index, {"text": ""})
        block["text"] += delta["text"]
    elif "reasoningContent" in delta:
        block = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {"text": ""}}})
        told = block["reasoningContent"]["reasoningText"]
        thought = delta["reasoningContent"]
        if "text" in thought:
            told["text"] += thought["text"]
        if "signature" in thought:
            told["signature"] = thought["signature"]
