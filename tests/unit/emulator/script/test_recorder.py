"""A recording played again gives the same bytes, fails readably for a changed program, and holds no key."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from google import genai
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.director import ApiRequest
from dragoman.emulator.http_messages import CloseConnection, Wait
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.load import load_script, load_text
from dragoman.emulator.script.match import RequestView, differences
from dragoman.emulator.script.player import compose_http
from dragoman.emulator.script.recorder import Recorder
from dragoman.emulator.script.recording import RecordedResponse, make_step, write_step
from dragoman.emulator.testing import running
from dragoman.errors import ConfigError
from tests.unit.emulator.builders import hello
from tests.unit.emulator.script.scripted_service import user_request

# google-genai 3.1 subclasses aiohttp's session, which aiohttp 3.14 discourages; it can go when the SDK stops.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

MODEL = "gemini-3.8-flash"
KEY = "AIzaSyTheRealKeyOfSomebody"
GENERATE = f"/v1beta/models/{MODEL}:generateContent"
STREAM = f"/v1beta/models/{MODEL}:streamGenerateContent"


@asynccontextmanager
async def recording(upstream: str, file: Path, **options: Any) -> AsyncIterator[str]:
    recorder = Recorder(upstream, file, **options)
    url = await recorder.start()
    try:
        yield url
    finally:
        await recorder.close()


@asynccontextmanager
async def google(
    *pieces: bytes,
    cut: bool = False,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None,
) -> AsyncIterator[str]:
    """An upstream that answers every request with these pieces."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"content-type": "text/event-stream", "set-cookie": "session=1"}
        )
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if cut:
            assert request.transport is not None
            request.transport.close()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler or answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def get_weather(city: str) -> dict[str, str]:
    """The current weather of a city."""
    return {"weather": f"sunny in {city}"}


async def chat(url: str, words: str = 'use get_weather with {"city": "Paris"}') -> list[Any]:
    """An agent: a turn with automatic function calling, then a streamed one; all that it was answered."""
    options = types.HttpOptions(base_url=url)
    config = types.GenerateContentConfig(tools=[get_weather], system_instruction="Be brief.")
    async with genai.Client(api_key=KEY, http_options=options).aio as client:
        talk = client.chats.create(model=MODEL, config=config)
        first = await talk.send_message(words)
        second = [chunk async for chunk in await talk.send_message_stream("say good bye")]
        counted = await client.models.count_tokens(model=MODEL, contents="how long is this?")
        return [answer.model_dump(exclude={"sdk_http_response"}) for answer in (first, *second, counted)]


async def post(url: str, body: Any, **headers: str) -> bytes:
    async with aiohttp.ClientSession() as session, session.post(url, json=body, headers=headers) as answer:
        return await answer.read()


async def get(url: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status


async def test_an_agent_replayed_without_the_service_sees_the_same(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    with running(seed="somebody else's") as real:
        async with recording(real.url, file) as url:
            recorded = await chat(url)
    assert len(load_script(file).script.steps) == 4
    with running(file) as replayed:  # the other one is off; at its end every step must have been used
        assert await chat(replayed.url) == recorded
    assert KEY not in file.read_text()


async def test_a_changed_agent_is_told_what_changed(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    with running() as real:
        async with recording(real.url, file) as url:
            await chat(url)
    with running(file, check=False) as replayed:
        with pytest.raises(
            genai.errors.ClientError, match=r"step 1 .*says: expected .*use get_weather .*, got .*say hi"
        ):
            await chat(replayed.url, "say hi")
        changed = {**user_request("say good bye"), "systemInstruction": {"parts": [{"text": "Be long."}]}}
        message = json.loads(await post(replayed.url + STREAM, changed))[0]["error"]["message"]
        assert "system: expected 'Be brief.', got 'Be long.'" in message
    assert any("never used" in problem for problem in replayed.problems())


async def test_bytes_and_borders_of_a_stream_come_back_exactly(tmp_path: Path) -> None:
    """A border inside a character, bytes that are no text, and what YAML would like to change."""
    pieces = (
        b"data: {\xc3",
        b"\xa4}\r\n\r\n",
        b"\xff\x00",
        b"no\n",
        b" \t\xc2\x85\xe2\x80\xa8: yes\r",
        b"0777",
        b"~",
    )
    file = tmp_path / "s.yaml"
    async with google(*pieces) as upstream, recording(upstream, file) as url:
        heard = await post(f"{url}{STREAM}?alt=sse", hello())
    step = load_script(file).script.steps[0]
    assert step.http is not None
    answer = compose_http(step.http)
    assert answer.body_writes == pieces
    assert answer.content_type == "text/event-stream"
    assert answer.streamed
    with running(file) as replayed:
        assert await post(f"{replayed.url}{STREAM}?alt=sse", hello()) == heard == b"".join(pieces)
    assert "session=1" not in file.read_text()


async def test_a_service_that_compresses_unasked_is_recorded_in_plain(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b'{"a": 1}' * 100), headers={"content-encoding": "gzip"})

    file = tmp_path / "s.yaml"
    async with google(handler=answer) as upstream, recording(upstream, file) as url:
        heard = await post(url + GENERATE, hello())
    with running(file) as replayed:
        assert await post(replayed.url + GENERATE, hello()) == heard == b'{"a": 1}' * 100


@pytest.mark.parametrize("place", ["header", "query", "bearer"])
async def test_a_key_is_passed_on_and_never_written(tmp_path: Path, place: str) -> None:
    file = tmp_path / "s.yaml"
    with running() as real:
        async with recording(real.url, file) as url:
            query = f"?key={KEY}" if place == "query" else ""
            headers = {"header": {"x-goog-api-key": KEY}, "bearer": {"Authorization": f"Bearer {KEY}"}}
            await post(url + GENERATE + query, user_request(f"my key is {KEY}"), **headers.get(place, {}))
    wanted = "authorization" if place == "bearer" else "x-goog-api-key"
    assert real.requests[0].headers[wanted].endswith(KEY)
    assert real.requests[0].status == 200
    assert real.requests[0].headers["accept-encoding"] == "identity"
    assert KEY not in file.read_text()


async def test_a_key_that_the_service_repeats_is_hidden_over_the_borders_of_pieces(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    pieces = (b"key " + KEY.encode()[:9], KEY.encode()[9:] + b" is bad")
    async with google(*pieces) as upstream, recording(upstream, file) as url:
        heard = await post(url + STREAM, hello(), **{"x-goog-api-key": KEY})
    assert KEY.encode() in heard
    step = load_script(file).script.steps[0]
    assert step.http is not None
    assert compose_http(step.http).body == heard.replace(KEY.encode(), b"x" * len(KEY))


async def test_an_answer_that_breaks_off_breaks_off_again(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    async with google(b"data: 1\r\n\r\n", cut=True) as upstream, recording(upstream, file) as url:
        with pytest.raises(aiohttp.ClientPayloadError):
            await post(url + STREAM, hello())
    step = load_script(file).script.steps[0]
    assert step.http is not None
    assert compose_http(step.http).actions == (b"data: 1\r\n\r\n", CloseConnection())


async def test_refusals_of_the_service_are_recorded_too(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    wrong = {"contents": [], "unheardOf": 1}
    with running() as real:
        async with recording(real.url, file) as url:
            heard = await post(url + GENERATE, wrong)
    with running(file) as replayed:
        assert await post(replayed.url + GENERATE, wrong) == heard
        assert replayed.requests[0].status == 400


async def test_what_is_not_generated_is_only_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with running() as real:
        async with recording(real.url + "/", file) as url:
            assert await get(f"{url}/v1beta/models?pageSize=1") == 200
    assert real.requests[0].path == "/v1beta/models"
    assert not file.exists()


async def test_a_service_that_is_not_there_is_told_and_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with running() as gone:
        pass
    async with recording(gone.url, file) as url:
        body = json.loads(await post(url + GENERATE, hello()))
    assert body["error"]["message"].startswith("the emulator cannot reach 127.0.0.1")
    assert not file.exists()


def test_a_recording_never_overwrites(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        Recorder("http://127.0.0.1:1", file)
    for address in ("", "generativelanguage.googleapis.com", "ftp://x", "http://[", "http://"):
        with pytest.raises(ConfigError, match="http or https address"):
            Recorder(address, tmp_path / "new.yaml")


def asked(words: str = "x") -> ApiRequest:
    route = find_route("POST", STREAM)
    assert route is not None
    return ApiRequest(route=route, request=user_request(words), raw_body=b"", headers={})


def test_timing_is_recorded_when_it_is_wanted() -> None:
    heard = RecordedResponse(
        status=200, headers={}, pieces=[(0.5, b"a"), (0.25, b"b"), (0, b"c")], streamed=True
    )
    for timing, delay, acts in [
        (True, 0.5, (b"a", Wait(0.25), b"b", b"c")),
        (False, None, (b"a", b"b", b"c")),
    ]:
        step = load_text("steps:\n" + write_step(make_step(asked(), heard, timing=timing))).script.steps[0]
        assert step.http is not None
        assert (step.delay, compose_http(step.http).actions) == (delay, acts)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=20) | st.text(min_size=1, max_size=20).map(str.encode)),
    st.booleans(),
)
def test_any_bytes_survive_the_file(pieces: list[bytes], streamed: bool) -> None:
    heard = RecordedResponse(
        status=200, headers={}, pieces=[(0, piece) for piece in pieces], streamed=streamed
    )
    step = load_text("steps:\n" + write_step(make_step(asked(), heard, timing=False))).script.steps[0]
    assert step.http is not None
    answer = compose_http(step.http)
    assert answer.body == b"".join(pieces)
    assert not streamed or answer.body_writes == tuple(pieces)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=600))
def test_any_words_are_recognised_again(words: str) -> None:
    said = asked(words)
    heard = RecordedResponse(status=200, headers={}, pieces=[], streamed=False)
    loaded = load_text("otherwise: refuse\nsteps:\n" + write_step(make_step(said, heard, timing=False)))
    assert loaded.script.steps[0].when is not None
    assert differences(loaded.script.steps[0].when, RequestView(said, 1)) == []


RECORD = """
import asyncio, sys
from pathlib import Path
from dragoman.emulator.script.match import RequestView, differences
from dragoman.emulator.script.recorder import Recorder

async def main() -> None:
    print(await Recorder(sys.argv[1], Path(sys.argv[2])).start(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_crash_in_the_middle_of_an_answer_leaves_a_script(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with running() as real:
        real.script(
            {"steps": [{"reply": "whole"}, {"chunks": [{"parts": [{"text": "half"}]}, {"wait": 60}]}]}
        )
        recorder = subprocess.Popen(
            [sys.executable, "-c", RECORD, real.url, str(file)], stdout=subprocess.PIPE, text=True
        )
        assert recorder.stdout is not None
        url = (await asyncio.to_thread(recorder.stdout.readline)).strip()
        whole = await post(url + GENERATE, hello())
        stream = f"{url}{STREAM}?alt=sse"
        async with aiohttp.ClientSession() as session, session.post(stream, json=hello()) as answer:
            assert b"half" in await answer.content.readany()
            os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        recorder.stdout.close()
    with running(file) as replayed:
        assert await post(replayed.url + GENERATE, hello()) == whole
