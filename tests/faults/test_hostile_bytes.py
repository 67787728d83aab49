"""Bytes no client would send: a typed refusal in the shape of the dialect, never a mistake of ours, never a crash."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from typing import Any

import pytest

from tests.faults.harness import KEY, FakeGoogle, Running, answers, chunk, gateway
from tests.faults.test_all_routes import _GOOD

#: Every dialect that takes a conversation, and where its words, schemas and arguments stand.
PATHS: dict[str, Any] = {
    **_GOOD,
    "/model/gemini-3.8-flash/converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "/model/gemini-3.8-flash/invoke": {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    },
    "/v1/messages/count_tokens": _GOOD["/v1/messages"],
    "/v1/responses/compact": _GOOD["/v1/responses"],
    "/v1/responses/input_tokens": _GOOD["/v1/responses"],
    "/v1/conversations": {"items": []},
}
DEEP = 100_000
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "white space": b" " * 1_000_000,
    "half": b'{"model": "x", "messages": [{"role"',
    "two": b"{}{}",
    "a number": b"1",
    "a text": b'"{}"',
    "null": b"null",
    "not a number": b'{"model": NaN}',
    "infinite": b'{"model": Infinity}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "utf-16": "{}".encode("utf-16"),
    "gzip": gzip.compress(b"{}"),
    "zeroes": b"\0" * 1000,
    "invalid utf-8": b'{"model": "\xff\xfe"}',
    "overlong utf-8": b'{"model": "\xc0\xaf"}',
    "deep lists": b"[" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "many keys": b"{%b}" % b",".join(b'"k%d":0' % number for number in range(100_000)),
}
#: Put where words, tuning, schemas and arguments stand.
VALUES: dict[str, bytes] = {
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep schema": b'{"type":"object","properties":{"a":' * 5_000 + b"{}" + b"}}" * 5_000,
    "a huge number": b"9" * 5_000,
    "a huge exponent": b"1e999999",
    "a tiny exponent": b"1e-999999",
    "a long fraction": b"0." + b"1" * 100_000,
    "half a character": b'"\\ud83d"',
    "a turned character": b'"\\udc00\\ud83d"',
    "a zero": b'"\\u0000"',
    "invalid utf-8": b'"\xff"',
    "a line break": b'"a\r\nx-evil: 1"',
    "twice": b'{"type":"object","type":"array","a":1,"a":2}',
    "a loop": b'{"$ref":"#"}',
    "a bomb of references": json.dumps(
        {
            "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 9} for n in range(30)},
            "$ref": "#/$defs/d0",
        }
    ).encode(),
    "a slow pattern": b'{"type":"string","pattern":"(a+)+$"}',
    "a negative": b"-1",
    "true": b"true",
    "nothing": b"null",
    "many": b"[%b]" % b",".join([b"{}"] * 20_000),
}
MARK = "put it here"


def google() -> FakeGoogle:
    return FakeGoogle(answers(json.loads(chunk({"text": "Hello"}, finish="STOP")[6:])))


def spoiled(body: dict[str, Any]) -> list[Any]:
    """The body with the mark in the place of everything in it, and in the place of more that could be in it."""
    found: list[Any] = [{**body, name: MARK} for name in (*body, *_MORE)]
    declared = {"name": "f", "description": "d"}
    found += [
        {**body, "tools": [{**declared, "input_schema": MARK}]},
        {**body, "tools": [{"type": "function", **declared, "parameters": MARK}]},
        {**body, "tools": [{"type": "function", "function": {**declared, "parameters": MARK}}]},
        {**body, "tools": [{"functionDeclarations": [{**declared, "parametersJsonSchema": MARK}]}]},
        {**body, "toolConfig": {"tools": [{"toolSpec": {**declared, "inputSchema": {"json": MARK}}}]}},
        {**body, "messages": [{"role": "user", "content": MARK}]},
        {**body, "messages": [{"role": "user", "content": [{"type": "text", "text": MARK}]}]},
        {
            **body,
            "messages": [
                {"role": "user", "content": "go"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c", "name": "f", "input": MARK}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": MARK}]},
            ],
        },
        {**body, "input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": MARK}]},
        {**body, "contents": [{"role": "user", "parts": [{"functionCall": {"name": "f", "args": MARK}}]}]},
        {**body, "contents": [{"role": "user", "parts": [{"text": MARK}]}]},
    ]
    return found


_MORE = (
    "model", "max_tokens", "temperature", "stream", "tools", "tool_choice", "system", "metadata", "thinking", "messages",
    "max_output_tokens", "reasoning", "text", "response_format", "seed", "stop", "generationConfig", "toolConfig",
    "inferenceConfig", "conversation", "previous_response_id", "session_id",
)  # fmt: skip


async def ask(running: Running, path: str, body: bytes) -> tuple[int, bytes]:
    headers = {"x-api-key": KEY, "content-type": "application/json"}
    async with running.session.post(running.url + path, data=io.BytesIO(body), headers=headers) as response:
        return response.status, await response.read()


def check(path: str, name: str, status: int, answer: bytes) -> None:
    """Refused or served; a refusal is in the words of the dialect."""
    where = (path, name, status, answer[:300])
    assert status < 500, where
    if status == 200:
        return
    assert status in (400, 404, 413), where
    error = json.loads(answer)
    if path.startswith("/v1/messages"):
        assert error["type"] == "error", where
        assert error["error"]["type"] in ("invalid_request_error", "request_too_large", "not_found_error"), (
            where
        )
    elif path.startswith(("/model/", "/generate")):
        assert isinstance(error["message"], str), where
    elif path.startswith(("/v1beta", "/v1/gemini")):
        assert error["error"]["status"] in ("INVALID_ARGUMENT", "NOT_FOUND"), where
    else:
        assert error["error"]["type"] == "invalid_request_error", where


@pytest.mark.parametrize("path", PATHS)
async def test_a_body_that_is_none_is_refused_in_the_dialect(path: str) -> None:
    async with gateway(google()) as running:
        for name, body in BODIES.items():
            status, answer = await ask(running, path, body)
            check(path, name, status, answer)
            assert status == 400 or name == "many keys" or path == "/v1/conversations", (path, name)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.timeout(300)
async def test_a_value_beyond_reason_is_no_mistake_of_ours(path: str) -> None:
    async with gateway(google()) as running:
        for name, value in VALUES.items():
            for body in spoiled(PATHS[path]):
                raw = json.dumps(body).encode().replace(json.dumps(MARK).encode(), value)
                check(path, name, *(await ask(running, path, raw)))
        assert (await ask(running, path, json.dumps(PATHS[path]).encode()))[0] == 200  # and it still works


@pytest.mark.parametrize("path", PATHS)
async def test_a_query_of_too_many_fields_is_refused_in_the_dialect(path: str) -> None:
    """Of strangers too, before their keys are looked at."""
    query = "&".join(f"x{number}" for number in range(101))
    async with gateway(google()) as running:
        for key in (KEY, "a stranger's"):
            headers = {"x-api-key": key, "content-type": "application/json"}
            address = f"{running.url}{path}{'&' if '?' in path else '?'}{query}"
            async with running.session.post(address, data=b"{}", headers=headers) as response:
                check(path, "query", response.status, await response.read())
                assert response.status == 400


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, identity", "x"])
async def test_a_compressed_body_is_not_unpacked(path: str, coding: str) -> None:
    """There is no bomb to defuse: what no client needs, nobody gets."""
    bomb = gzip.compress(b" " * 10_000_000)
    async with gateway(google()) as running:
        headers = {"x-api-key": KEY, "content-type": "application/json", "content-encoding": coding}
        async with running.session.post(
            running.url + path, data=bomb, headers=headers, skip_auto_headers=("content-encoding",)
        ) as response:
            check(path, coding, response.status, await response.read())
            assert response.status == 400


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
async def test_a_body_that_says_it_is_plain_is_taken(coding: str) -> None:
    async with gateway(google()) as running:
        headers = {"x-api-key": KEY, "content-encoding": coding}
        async with running.session.post(
            running.url + "/v1/messages", json=PATHS["/v1/messages"], headers=headers
        ) as response:
            assert response.status == 200


def _request(
    extra: str = "", body: bytes | None = None, *, line: str = "", host: str = "host: localhost\r\n"
) -> bytes:
    """A good request for the wire, with one thing wrong about it."""
    data = json.dumps(PATHS["/v1/messages"]).encode()
    length = f"content-length: {len(data)}\r\n" if body is None else ""
    head = f"{line or 'POST /v1/messages HTTP/1.1'}\r\n{host}x-api-key: {KEY}\r\ncontent-type: application/json\r\n"
    return f"{head}{length}{extra}connection: close\r\n\r\n".encode() + (data if body is None else body)


_DATA = json.dumps(PATHS["/v1/messages"]).encode()
_CHUNKED = "transfer-encoding: chunked\r\n"


def _chunk(size: str, end: bytes = b"\r\n") -> bytes:
    return size.encode() + end + _DATA + end + b"0" + end + end


_SIZE = f"{len(_DATA):x}"
_SMUGGLED = b"0\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-api-key: " + KEY.encode() + b"\r\n\r\n"

#: What a proxy in front might read differently -> the statuses that may come back, and nothing behind them.
WIRE: dict[str, tuple[bytes, set[int]]] = {
    "two hosts": (_request("host: localhost\r\n"), {400}),
    "two hosts, the first is another's": (
        _request("host: localhost\r\n", host="host: evil.example\r\n"),
        {400, 403},
    ),
    "two hosts, the last is another's": (_request("host: evil.example\r\n"), {400, 403}),
    "no host": (_request(host=""), {400, 403}),
    "two content types": (_request("content-type: text/plain\r\n"), {400}),
    "two origins": (_request("origin: http://localhost\r\norigin: http://localhost\r\n"), {400}),
    "two keys, one of them right": (_request(f"x-api-key: {KEY}x\r\n"), {400}),
    "two bearers": (_request(f"authorization: Bearer x\r\nauthorization: Bearer {KEY}\r\n"), {400}),
    "lengths that differ": (_request("content-length: 3\r\n"), {400}),
    "a list of lengths": (_request(f"content-length: {len(_DATA)}, {len(_DATA)}\r\n", _DATA), {400}),
    "a signed length": (_request(f"content-length: +{len(_DATA)}\r\n", _DATA), {400}),
    "a negative length": (_request("content-length: -1\r\n", _DATA), {400}),
    "a length beyond reason": (_request("content-length: 99999999999999999999\r\n", _DATA), {400, 413}),
    "a length in hex": (_request("content-length: 0x10\r\n", _DATA), {400}),
    "an unknown transfer coding": (_request("transfer-encoding: xchunked\r\n", _chunk(_SIZE)), {400, 501}),
    "chunked is not the last": (
        _request("transfer-encoding: chunked, identity\r\n", _chunk(_SIZE)),
        {400, 501},
    ),
    "a space before the colon": (_request("transfer-encoding : chunked\r\n", _chunk(_SIZE)), {400}),
    "a folded header": (_request("x-a: b\r\n content-length: 3\r\n"), {400}),
    "a zero in a header": (_request("x-a: b\0c\r\n"), {400}),
    "a carriage return in a header": (_request("x-a: b\rc\r\n"), {400}),
    "a name with a space": (_request("x a: b\r\n"), {400}),
    "a size that is none": (_request(_CHUNKED, _chunk("zz")), {400}),
    "a size beyond reason": (_request(_CHUNKED, _chunk("f" * 17)), {400}),
    "chunks with bare line feeds": (_request(_CHUNKED, _chunk(_SIZE, b"\n")), {400}),
    "an extension without end": (_request(_CHUNKED, _chunk(f"{_SIZE};{'a' * 200_000}")), {400}),
    "a thousand headers": (_request("".join(f"x-{number}: y\r\n" for number in range(1000))), {400, 431}),
    "a header without end": (_request(f"x-a: {'a' * 1_000_000}\r\n"), {400, 431}),
    "a path without end": (_request(line=f"POST /v1/messages?{'a' * 100_000} HTTP/1.1"), {400, 414, 431}),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00" + b"\0" * 100, {400}),
    "no version": (_request(line="POST /v1/messages"), {400}),
    "a strange method": (_request(line="M\x01 /v1/messages HTTP/1.1"), {400}),
}


async def _send(running: Running, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(running.url.rpartition(":")[2]))
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("name", WIRE)
async def test_a_request_two_readers_could_read_differently_is_refused(name: str) -> None:
    data, allowed = WIRE[name]
    upstream = google()
    async with gateway(upstream) as running:
        answer = await _send(running, data)
        statuses = [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")]
        assert len(statuses) == 1, answer
        assert statuses[0] in allowed, answer
        assert (await running.messages(stream=False, tools=[])).status == 200
    assert len(upstream.arrived) == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("both lengths", _request(f"{_CHUNKED}content-length: {len(_SMUGGLED)}\r\n", _SMUGGLED)),
        (
            "both lengths, the other way",
            _request(f"content-length: 4\r\n{_CHUNKED}", _chunk(_SIZE) + _SMUGGLED),
        ),
        ("behind the end", _request("", None) + _SMUGGLED[5:]),
    ],
)
async def test_nothing_is_smuggled_behind_a_request(name: str, data: bytes) -> None:
    """Where a length and chunks stand together, or bytes behind the last request, the connection ends."""
    async with gateway(google()) as running:
        answer = await _send(running, data)
    assert answer.count(b"HTTP/1.1 ") == 1, (name, answer)
    assert b'"object":"list"' not in answer


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (_request(_CHUNKED, _chunk(_SIZE)), 200),
        (_request(_CHUNKED, _chunk(f"{_SIZE};a=b")), 200),
        (_request("expect: 100-continue\r\n"), 200),
        (_request("".join(f"x-{number}: y\r\n" for number in range(80))), 200),
    ],
)
async def test_what_is_only_unusual_is_served(data: bytes, status: int) -> None:
    async with gateway(google()) as running:
        answer = await _send(running, data)
    assert f"HTTP/1.1 {status} ".encode() in answer


async def test_one_who_sends_slowly_hinders_nobody() -> None:
    """A hundred requests that never end, and the gateway answers as if they were not there."""
    async with gateway(google()) as running:
        port = int(running.url.rpartition(":")[2])
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        for number, (_, writer) in enumerate(slow):
            writer.write(_request()[: 30 + number])
        for _ in range(5):
            assert (await running.messages(stream=False, tools=[])).status == 200
            for _, writer in slow:
                writer.write(b"x")
        for _, writer in slow:
            writer.close()
        assert (await running.messages(stream=False, tools=[])).status == 200
