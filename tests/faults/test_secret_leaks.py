"""Secrets planted everywhere a secret can be, in a real gateway process that logs and captures all it can.

Its output, files, Redis, answer headers and errors may contain none of them (known problems O5, Q11).
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import pytest
import redis

from dragoman.observe.captures import CAPTURES_FOLDER, recent_captures
from tests.e2e.gateway import Gateway
from tests.faults.harness import Arrived, FakeGoogle, answers, chunk, refuses, streams
from tests.redis_server import RedisServer
from tests.unit.gateway.auth.botocore_requests import headers_of, signed

_X = "0123456789abcdefghijABCDEFGHIJxyz"

#: Credentials: nowhere, ever.
CREDENTIALS = {
    "the gateway key": "Gateway-Key-with/a+slash-and-0123456789",
    "an admin's key": "admin-canary-0123456789-abcdef",
    "a wrong key": f"dgm-wrong-canary-{_X}",
    "Google's key": f"AIzaGatewaysOwn{_X}",
    "a client's Google key": f"AIzaClientsOwn{_X}",
    "a live login": f"aoa-live-login-{_X}",
    "the session token": f"IQoJb3JpZ2luX2VjEClient{_X}",
    "what an MCP server is given": "mcp-env-canary-0123456789",
    "what an MCP server is sent": "mcp-header-canary-0123456789",
    "the password of Redis": "redis-pass-canary-0123456789",
}
#: In the words of a conversation: kept where conversations are kept, and nowhere else.
SPOKEN = {
    "an argument of a tool": f"sk-ant-tool-argument-{_X}",
    "the answer of a tool": f"ghp_toolanswer{_X.lower()}",
}
SECRETS = CREDENTIALS | SPOKEN
GATEWAY, GOOGLE, OWN = (
    CREDENTIALS[name] for name in ("the gateway key", "Google's key", "a client's Google key")
)
WRONG, LOGIN, TOKEN = (CREDENTIALS[name] for name in ("a wrong key", "a live login", "the session token"))
ARGUMENT, RESULT = SPOKEN.values()
MCP = {
    "local": {"command": ["/bin/false"], "env": {"TOKEN": CREDENTIALS["what an MCP server is given"]}},
    "remote": {
        "url": "https://127.0.0.1:9/mcp",
        "headers": {"Authorization": f"Bearer {CREDENTIALS['what an MCP server is sent']}"},
    },
}


class Ask(msgspec.Struct, frozen=True):
    path: str
    body: Any
    stream: bool = False


def _dialects() -> Iterator[Ask]:
    """Every dialect, whole and streamed, with a tool that was called with a secret and answered with another."""
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    for stream in (False, True):
        call = {"type": "tool_use", "id": "c1", "name": "login", "input": {"password": ARGUMENT}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": RESULT}
        yield Ask(
            "/v1/messages",
            {
                "model": "claude-sonnet-4-5",
                "max_tokens": 99,
                "tools": [{"name": "login", "input_schema": schema}],
                "messages": [
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": [call]},
                    {"role": "user", "content": [result]},
                ],
                "stream": stream,
            },
            stream,
        )
        function = {"name": "login", "arguments": json.dumps({"password": ARGUMENT})}
        yield Ask(
            "/v1/chat/completions",
            {
                "model": "gpt-5",
                "tools": [{"type": "function", "function": {"name": "login", "parameters": schema}}],
                "messages": [
                    {"role": "user", "content": "go"},
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": RESULT},
                ],
                "stream": stream,
            },
            stream,
        )
        yield Ask(
            "/v1/responses",
            {
                "model": "gpt-5",
                "tools": [{"type": "function", "name": "login", "parameters": schema}],
                "input": [
                    {"role": "user", "content": "go"},
                    {"type": "function_call", "call_id": "c1", **function},
                    {"type": "function_call_output", "call_id": "c1", "output": RESULT},
                ],
                "stream": stream,
                "store": False,
            },
            stream,
        )
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        native = {
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "login", "args": {"password": ARGUMENT}}}],
                },
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "login", "response": {"output": RESULT}}}],
                },
            ],
            "tools": [{"functionDeclarations": [{"name": "login", "parametersJsonSchema": schema}]}],
        }
        yield Ask(f"/v1beta/models/gemini-3.8-flash:{method}", native, stream)
        yield Ask("/v1/gemini", {"model": "gemini-3.8-flash", "input": "go", "stream": stream}, stream)
    used = {"toolUseId": "c1", "name": "login", "input": {"password": ARGUMENT}}
    told = {"toolUseId": "c1", "content": [{"text": RESULT}], "status": "success"}
    state = {
        "chatTriggerType": "MANUAL",
        "history": [
            {"userInputMessage": {"content": "go"}},
            {"assistantResponseMessage": {"content": "", "toolUses": [used]}},
        ],
        "currentMessage": {
            "userInputMessage": {"content": "", "userInputMessageContext": {"toolResults": [told]}}
        },
    }
    yield Ask("/generateAssistantResponse", {"conversationState": state}, stream=True)
    for method in ("converse", "converse-stream"):
        told = {"toolUseId": "c1", "content": [{"text": RESULT}]}
        converse = {
            "messages": [
                {"role": "user", "content": [{"text": "go"}]},
                {"role": "assistant", "content": [{"toolUse": used}]},
                {"role": "user", "content": [{"toolResult": told}]},
            ],
            "toolConfig": {"tools": [{"toolSpec": {"name": "login", "inputSchema": {"json": schema}}}]},
        }
        yield Ask(f"/model/gemini-3.8-flash/{method}", converse, stream=method == "converse-stream")


ASKS = list(_dialects())
SAID = {"text": "Hello"}
LEAK = f"API key not valid: {GOOGLE} {OWN}; https://generativelanguage.googleapis.com/v1?key={GOOGLE} said {ARGUMENT}"


async def _break_off(writer: asyncio.StreamWriter) -> None:
    writer.close()


def _troubles() -> dict[str, tuple[Callable[[asyncio.StreamWriter], Awaitable[None]], ...]]:
    """How Google answers: to a whole request, and to a stream."""
    error = (
        b"data: %b\r\n\r\n"
        % json.dumps({"error": {"code": 500, "message": LEAK, "status": "INTERNAL"}}).encode()
    )
    whole = json.loads(chunk(SAID, finish="STOP")[6:])
    return {
        "well": (answers(whole), streams(chunk(SAID, finish="STOP"))),
        "refuses the key": (refuses(400, LEAK, {"reason": "API_KEY_INVALID", "key": GOOGLE}),) * 2,
        "breaks": (refuses(500, LEAK),) * 2,
        "is a page": (refuses(502, body=f"<html>{LEAK}</html>".encode()),) * 2,
        "breaks in the stream": (refuses(503, LEAK), streams(chunk(SAID), error)),
        "is cut": (_break_off, streams(chunk(SAID), cut=True)),
        "stops oddly": (
            answers({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": LEAK}]}),
            streams(chunk(finish="MALFORMED_FUNCTION_CALL")),
        ),
    }


class TellTale(FakeGoogle):
    """Answers as it is told at the moment."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = "well"

    def answer_to(self, arrived: Arrived) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
        whole, stream = _troubles()[self.mood]
        return stream if "stream" in arrived.path else whole


class Seen(msgspec.Struct, frozen=True):
    """An answer as a client got it."""

    status: int
    headers: str
    body: str


def send(
    url: str,
    ask: Ask,
    headers: dict[str, str],
    *,
    method: str = "POST",
    prefix: str = "",
    query: str = "",
    raw: bytes = b"",
) -> Seen:
    """One request over a connection of its own; `raw` goes instead of the body."""
    sign = "?" if "?" not in ask.path else "&"
    target = prefix + ask.path + (f"{sign}{query}" if query else "")
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        body = raw or json.dumps(ask.body).encode()
        connection.request(method, target, body, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        return Seen(response.status, str(response.getheaders()), response.read().decode("utf-8", "replace"))
    finally:
        connection.close()


def sign(url: str, ask: Ask, secret: str) -> dict[str, str]:
    head = signed(
        url=url + ask.path,
        body=json.dumps(ask.body).encode(),
        at=datetime.now(UTC),
        headers=[("content-type", "application/json")],
        secret=secret,
        token=TOKEN,
    )
    return headers_of(head)


def ask_everything(url: str, google: TellTale) -> list[Seen]:
    """Every dialect with every credential in every mood of Google's, and all that never gets as far."""
    seen: list[Seen] = []
    slashed = quote(GATEWAY, safe="")
    for mood, ask in itertools.product(_troubles(), ASKS):
        google.mood = mood
        seen.append(send(url, ask, {"authorization": f"Bearer {GATEWAY}"}))
        seen.append(send(url, ask, {"x-goog-api-key": OWN}))
    google.mood = "well"
    for ask in ASKS:
        live = {"authorization": f"Bearer {LOGIN}", "x-amz-security-token": TOKEN}
        seen += [
            send(url, ask, live, prefix=f"/key/{quote(slashed)}"),
            send(url, ask, live, prefix=f"//key/{slashed}"),
            send(url, ask, live, prefix=f"/nowhere/{slashed}"),
            send(url, ask, {}, query=f"key={slashed}"),
            send(url, ask, {}, query=f"key={WRONG}"),
            send(url, ask, {"x-api-key": WRONG}),
            send(url, ask, {"x-api-key": GATEWAY, "user-agent": f"tool/{GATEWAY}"}),
            send(url, ask, sign(url, ask, GATEWAY)),
            send(url, ask, sign(url, ask, WRONG)),
            send(url, ask, {**sign(url, ask, GATEWAY), "x-amz-date": "now"}),
            send(url, ask, {"x-api-key": GATEWAY}, raw=f'{{"api_key": "{ARGUMENT}" "{GATEWAY}"'.encode()),
            send(url, ask, {"x-api-key": GATEWAY}, raw=f'{{"model": 1, "{ARGUMENT}": "{GOOGLE}"}}'.encode()),
            send(
                url,
                ask,
                {"x-api-key": GATEWAY},
                raw=json.dumps({"model": GATEWAY, **_odd(ask.body)}).encode(),
            ),
            send(url, ask, {"x-api-key": GATEWAY, "content-type": f"text/{WRONG}"}),
            send(url, ask, {"x-api-key": GATEWAY, "host": WRONG}),
            send(url, ask, {"x-api-key": GATEWAY, "content-encoding": WRONG}),
        ]
    kept = Ask("/v1/responses", {"model": "gpt-5", "input": "go", "conversation": "canary"})
    seen += [send(url, kept, {"authorization": f"Bearer {GATEWAY}"}) for _ in range(2)]
    numbers = send(url, Ask("/metrics", None), {"x-api-key": GATEWAY}, method="GET")
    assert numbers.status == 200
    assert "dragoman_" in numbers.body
    assert find(SECRETS, numbers.body) == []
    return [*seen, numbers]


def _odd(body: dict[str, Any]) -> dict[str, Any]:
    """The same request with secrets where nobody expects them."""
    return {
        **body,
        "model": f"gemini-{GOOGLE}?key={GATEWAY}",
        "api_key": GOOGLE,
        "extra": {GATEWAY: ARGUMENT},
    }


@asynccontextmanager
async def gateway_process(
    folder: Path, google: TellTale, **settings: str
) -> AsyncIterator[tuple[Gateway, Path]]:
    fake = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    home = folder / "home"
    process = Gateway(
        home,
        f"http://127.0.0.1:{fake.sockets[0].getsockname()[1]}",
        GATEWAY_KEY=GATEWAY,
        SERVER_ADMIN_KEYS=CREDENTIALS["an admin's key"],
        UPSTREAM_API_KEY=GOOGLE,
        UPSTREAM_MAX_ATTEMPTS="1",
        OBSERVE_LOG="all",
        OBSERVE_CAPTURE="all",
        MCP_SERVERS=json.dumps(MCP),
        **settings,
    )
    await asyncio.to_thread(process.start)
    try:
        yield process, home
    finally:
        await asyncio.to_thread(process.stop)
        fake.close()


def find(secrets: dict[str, str], text: str) -> list[str]:
    return [name for name, secret in secrets.items() if secret in text or quote(secret, safe="") in text]


#: What the commands make of a capture: to read, to test with, to play, and once more.
COMMANDS = (
    ("explain", "--full"),
    ("explain", "--json"),
    ("capture export", "--as golden"),
    ("capture export", "--as script"),
    ("replay", "--against emulator"),
)


def shown_by_commands(home: Path) -> dict[str, str]:
    """Of one captured answer of each path; what cannot be exported or replayed says why."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home)}
    answered = {
        one.record.path: one
        for one in recent_captures(home / CAPTURES_FOLDER, 9999)
        if one.record.status == 200
    }
    assert len(answered) >= 8
    shown: dict[str, str] = {}
    for path, captured in answered.items():
        for command, flags in COMMANDS:
            words = [*command.split(), captured.record.id, *flags.split()]
            done = subprocess.run(
                [sys.executable, "-m", "dragoman", *words],
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            assert "Traceback" not in done.stderr, (path, words, done.stderr)
            shown[f"{path} {' '.join(words)}"] = done.stdout + done.stderr
    assert sum("the requests to Google" in said for said in shown.values()) >= 5
    return shown


@pytest.mark.timeout(600)
async def test_o5_no_secret_is_found_anywhere_afterwards(tmp_path: Path) -> None:
    google = TellTale()
    async with gateway_process(tmp_path, google) as (process, home):
        seen = await asyncio.to_thread(ask_everything, process.url, google)
    assert {one.status for one in seen} >= {200, 400, 401, 403, 404}
    assert not [one for one in seen if one.status >= 500 and "Dragoman made a mistake" in one.body]
    for one in seen:
        assert find(SECRETS, one.headers) == [], one.headers
        assert find(CREDENTIALS if one.status == 200 else SECRETS, one.body) == [], (one.status, one.body)
    log = process.log()
    assert log.count("POST /v1/messages") > 50  # it is the log, and it says everything
    assert "failed: invalid_request" in log
    assert find(SECRETS, log) == []
    files = [file for file in home.rglob("*") if file.is_file()]
    assert sum(file.parent.name == "captures" for file in files) > 50
    for file in files:
        secrets = SECRETS if file.parent.name == "captures" else CREDENTIALS
        assert find(secrets, file.read_bytes().decode("latin-1")) == [], file
    for words, said in (await asyncio.to_thread(shown_by_commands, home)).items():
        assert find(SECRETS, said) == [], words
    sent = [str(arrived.headers) + arrived.path for arrived in google.arrived]
    assert not [head for head in sent if find({"": GATEWAY, " ": LOGIN, "  ": TOKEN}, head)]


@pytest.mark.timeout(600)
async def test_o5_nor_in_redis(tmp_path: Path) -> None:
    """Nor its own password in what is said when it goes away."""
    password = CREDENTIALS["the password of Redis"]
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder, "--requirepass", password)
    server.url = f"unix://:{password}@{folder}/redis.sock"
    google = TellTale()
    server.start()
    try:
        async with gateway_process(tmp_path, google, STORE_URL=server.url) as (process, _):
            seen = await asyncio.to_thread(ask_everything, process.url, google)
            with server.client() as client:
                kept = "\n".join(_dump(client))
            server.stop()
            ask = Ask("/v1/responses", {"model": "gpt-5", "input": "go", "conversation": "canary"})
            seen.append(await asyncio.to_thread(send, process.url, ask, {"x-api-key": GATEWAY}))
    finally:
        server.stop()
    assert seen[-1].status == 503
    assert kept
    assert find(CREDENTIALS, kept) == []
    assert find(SECRETS, process.log()) == []
    for one in seen:
        assert find(CREDENTIALS, one.body + one.headers) == []


def _dump(client: redis.Redis) -> Iterator[str]:
    readers: dict[bytes, Callable[[Any], Any]] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"zset": lambda key: client.zrange(key, 0, -1),
    }
    for key in client.scan_iter():
        kind: Any = client.type(key)
        yield f"{key!r} {readers[kind](key)!r}"
