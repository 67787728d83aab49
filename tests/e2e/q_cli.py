"""A client of our own in place of the Rust programs, which no registry has: it asks and reads as their source says.

It keeps the conversation as they do: a context entry first, prompts wrapped, the tools out of a hash map and on the
current message alone, and of an answer nothing but its text and its tool uses. The schemas are the built-in tools'
own, byte for byte. What it reads is read strictly (`rust_cli`).
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

import tests.unit.dialects.amazonq as amazonq_tests
from dragoman.http.aws_eventstream import EventStreamDecoder
from tests.e2e.gateway import GATEWAY_KEY
from tests.unit.dialects.amazonq.strict_reader import Reading, RustCli, ToolUse
from tests.unit.gateway.auth.botocore_requests import headers_of, signed

Json = dict[str, Any]
RunTool = Callable[[ToolUse], Json]

SCHEMAS = msgspec.json.decode(
    (Path(amazonq_tests.__file__).parent / "builtin_tools.json").read_bytes(), type=dict[str, msgspec.Raw]
)
_CONTEXT = "--- CONTEXT ENTRY BEGIN ---\n{}\n--- CONTEXT ENTRY END ---\n\n"
_PROMPT = "--- USER MESSAGE BEGIN ---\n{}--- USER MESSAGE END ---\n\n"
_ENV = {"operatingSystem": "linux", "currentWorkingDirectory": "/work", "environmentVariables": []}
_TIMEOUT_S = 60.0


class Form(msgspec.Struct, frozen=True):
    """What differs between the programs: the target, the address, who they say they are, and how they prove it."""

    target: str
    path: str = "/"
    origin: str = "CLI"
    model: str = "gemini-3.8-flash"
    is_signed: bool = False
    outside: Json = {}

    def headers(self, url: str, body: bytes, key: str) -> dict[str, str]:
        named = {"content-type": "application/x-amz-json-1.0", "x-amz-target": self.target}
        if not self.is_signed:
            return {**named, "authorization": f"Bearer {key}"}
        now = datetime.now(UTC)
        head = signed(url=url, headers=named.items(), body=body, secret=key, service="q", at=now)
        return headers_of(head)


#: `q chat`; the same without a login; the second and the third engine of Kiro.
FORMS = {
    "q": Form("AmazonCodeWhispererStreamingService.GenerateAssistantResponse"),
    "q signed": Form(
        "AmazonQDeveloperStreamingService.SendMessage",
        model="claude-sonnet-4",
        is_signed=True,
        outside={"source": "CLI"},
    ),
    "kiro 2": Form(
        "AmazonCodeWhispererStreamingService.GenerateAssistantResponse",
        path="/?origin=KIRO_CLI",
        origin="KIRO_CLI",
    ),
    "kiro 3": Form(
        "KiroRuntimeService.GenerateAssistantResponse",
        origin="AI_EDITOR",
        model="auto",
        outside={"agentMode": "vibe"},
    ),
}


class QCli:
    """One conversation; `tools` are the names of those that are on."""

    def __init__(self, url: str, form: Form, key: str = GATEWAY_KEY) -> None:
        self._url, self._form, self._key = url, form, key
        self.tools = list(SCHEMAS)
        self.history: list[Json] = [
            _said(_CONTEXT.format("Be brief.")),
            {"assistantResponseMessage": {"messageId": "m", "content": "I will keep it in mind."}},
        ]

    def chat(self, prompt: str, run: RunTool, **more: Any) -> list[Reading]:
        """Every answer until one uses no tool."""
        readings = [self.say(prompt, **more)]
        while readings[-1].tools:
            readings.append(self.answer([run(tool) for tool in readings[-1].tools]))
        return readings

    def say(self, prompt: str, results: list[Json] | None = None, **more: Any) -> Reading:
        """A prompt; with `results` those of tools that the user has refused."""
        context = {"envState": _ENV, **({"toolResults": results} if results else {})}
        time = _CONTEXT.format("Current time: Sunday, 2026-11-15T10:00:00+00:00")
        return self._turn(_said(time + _PROMPT.format(prompt), userInputMessageContext=context, **more))

    def answer(self, results: list[Json], **more: Any) -> Reading:
        context = {"envState": _ENV, "toolResults": results}
        return self._turn(_said("", userInputMessageContext=context, **more))

    def _turn(self, message: Json) -> Reading:
        reading = self._ask(self._body(message))
        uses = [{"toolUseId": tool.id, "name": tool.name, "input": tool.input} for tool in reading.tools]
        kept = {"messageId": reading.utterance_id, "content": reading.text}
        self.history += [message, {"assistantResponseMessage": {**kept, "toolUses": uses}}]
        return reading

    def _body(self, message: Json) -> bytes:
        self.tools = self.tools[1:] + self.tools[:1]
        said = message["userInputMessage"]
        tools = [
            {"toolSpecification": {"name": name, "description": name, "inputSchema": {"json": SCHEMAS[name]}}}
            for name in self.tools
        ]
        context = {**said["userInputMessageContext"], "tools": tools}
        current = {**said, "modelId": self._form.model, "origin": self._form.origin}
        current["userInputMessageContext"] = context
        state = {
            "conversationId": "11111111-2222-4333-8444-555555555555",
            "chatTriggerType": "MANUAL",
            "history": self.history,
            "currentMessage": {"userInputMessage": current},
        }
        return msgspec.json.encode({"conversationState": state, **self._form.outside})

    def _ask(self, body: bytes) -> Reading:
        connection = http.client.HTTPConnection(urlsplit(self._url).netloc, timeout=_TIMEOUT_S)
        try:
            url = self._url + self._form.path
            connection.request("POST", self._form.path, body, self._form.headers(url, body, self._key))
            response = connection.getresponse()
            if response.status != 200:
                raise Refused(response.status, json.loads(response.read()))
            return _read(response)
        finally:
            connection.close()


class Refused(Exception):
    """A status that is none of success, and what it was told with."""

    def __init__(self, status: int, told: Json) -> None:
        super().__init__(status, told)
        self.status, self.told = status, told


def _said(content: str, **more: Any) -> Json:
    return {"userInputMessage": {"content": content, "userInputMessageContext": {}, **more}}


def _read(response: http.client.HTTPResponse) -> Reading:
    decoder, client = EventStreamDecoder(), RustCli()
    while piece := response.read1(7):
        for message in decoder.feed(piece):
            client.feed(message)
    decoder.close()
    return client.close()
