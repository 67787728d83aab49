"""Files that a request names by URL: fetched only if the settings allow it, in every dialect (known problems J4, Q9)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.config import MediaConfig
from dragoman.gateway.relay.remote_files import RemoteFileInliner
from dragoman.upstream.remote_files import FileFetcher
from tests.faults.harness import KEY, FakeGoogle, Running, answers, chunk, gateway
from tests.unit.upstream.test_file_fetcher import PDF, PNG, PUBLIC, Act, Names, Server, serves

OTHER = "dgm-another-key-of-sufficient-length"
WORDS = "what is this"


def asks(picture: str, document: str) -> dict[str, dict[str, Any]]:
    """Both in every dialect that has a form for addresses."""
    chat = [
        {"type": "text", "text": WORDS},
        {"type": "image_url", "image_url": {"url": picture}},
    ]
    responses = [
        {"type": "input_text", "text": WORDS},
        {"type": "input_image", "image_url": picture},
        {"type": "input_file", "file_url": document},
    ]
    anthropic = [
        {"type": "text", "text": WORDS},
        {"type": "image", "source": {"type": "url", "url": picture}},
        {"type": "document", "source": {"type": "url", "url": document}},
    ]
    native = [
        {"text": WORDS},
        {"fileData": {"fileUri": picture, "mimeType": "image/png"}},
        {"fileData": {"fileUri": document, "mimeType": "application/pdf"}},
    ]
    contents = [{"role": "user", "parts": native}]
    return {
        "/v1/messages": {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": anthropic}],
        },
        "/v1/chat/completions": {"model": "gpt-5", "messages": [{"role": "user", "content": chat}]},
        "/v1/responses": {"model": "gpt-5", "input": [{"role": "user", "content": responses}]},
        "/v1beta/models/gemini-3.8-flash:generateContent": {"contents": contents},
        "/v1/gemini": {"model": "gemini-3.8-flash", "input": contents},
        "/model/gemini-3.8-flash/invoke": {
            "anthropic_version": "bedrock-2023-05-31",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": anthropic}],
        },
    }


PATHS = list(asks("", ""))


@asynccontextmanager
async def library(
    act: Act | None = None, *, fetch: bool = True, **media: Any
) -> AsyncIterator[tuple[Running, FakeGoogle, Server]]:
    """A gateway, its Google, and the server of a public host."""
    google = FakeGoogle(answers(json.loads(chunk({"text": "Hello"}, finish="STOP")[6:])))
    settings = MediaConfig(fetch=fetch, **media)
    async with (
        Server(PUBLIC).running() as server,
        gateway(google, keys=(KEY, OTHER), media=settings) as running,
    ):
        if act is not None:
            server.act = act
        names = Names(files_example=[PUBLIC], inside_example=["127.0.0.1"])
        fetcher = FileFetcher(
            max_bytes=settings.max_bytes,
            timeout_s=settings.timeout_s,
            resolve=names,
            allowed=lambda address: address == PUBLIC,
        )
        running.app.gateway.remote_files = RemoteFileInliner(settings, fetcher)
        yield running, google, server


def parts_of(google: FakeGoogle, turn: int = -1) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = google.arrived[turn].body["contents"][0]["parts"]
    return parts


async def both(writer: asyncio.StreamWriter, path: str) -> None:
    act = serves(PDF, kind="application/pdf") if path.endswith("pdf") else serves(PNG)
    await act(writer, path)


@pytest.mark.parametrize("path", PATHS)
async def test_q9_nothing_is_fetched_by_default(path: str) -> None:
    """Google gets the address as it is; what it does with it is Google's network's business."""
    async with library(fetch=False) as (running, google, server):
        place = f"http://files.example:{server.port}"
        for picture in (
            f"{place}/a.png",
            "http://169.254.169.254/latest/a.png",
            f"http://{PUBLIC}:{server.port}/a.png",
        ):
            response = await running.post(path, **asks(picture, f"{place}/b.pdf")[path])
            assert response.status == 200, await response.text()
            assert picture in [part.get("fileData", {}).get("fileUri") for part in parts_of(google)]
        await asyncio.sleep(0.05)
        assert server.heads == []


@pytest.mark.parametrize("path", PATHS)
async def test_j4_where_the_settings_say_so_files_are_put_into_the_request(path: str) -> None:
    async with library(both) as (running, google, server):
        place = f"http://files.example:{server.port}"
        response = await running.post(path, **asks(f"{place}/a.png", f"{place}/b.pdf")[path])
        assert response.status == 200, await response.text()
        inline = [part["inlineData"] for part in parts_of(google) if "inlineData" in part]
        found = {one["mimeType"]: base64.b64decode(one["data"]) for one in inline}
        assert found["image/png"] == PNG
        assert found.get("application/pdf", PDF) == PDF
        assert not [part for part in parts_of(google) if "fileData" in part]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "picture",
    ["http://inside.example/a.png", "http://169.254.169.254/a.png", "http://[::1]/a.png", "http:////a.png"],
)
async def test_q9_an_inner_address_is_refused_in_the_dialect(path: str, picture: str) -> None:
    async with library(both) as (running, google, server):
        response = await running.post(
            path, **asks(picture, f"http://files.example:{server.port}/b.pdf")[path]
        )
        assert response.status == 400
        assert "cannot be used" in await response.text()
        assert google.arrived == []


def history(address: str) -> dict[str, Any]:
    """A picture in a result of an older turn."""
    image = {"type": "image", "source": {"type": "url", "url": address}}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [image]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [image]}]},
            {"role": "assistant", "content": "I see"},
            {"role": "user", "content": "and now?"},
        ],
    }


async def test_j4_an_address_that_died_does_not_end_the_conversation() -> None:
    async with library(serves(b"", status=404)) as (running, google, server):
        response = await running.post(**history(f"http://files.example:{server.port}/a.png"))
        assert response.status == 200, await response.text()
        assert int(response.headers["x-dragoman-notes"]) >= 1
    told = "(A file was left out here: its server answered HTTP 404.)"
    assert json.dumps(google.arrived[0].body).count(told) == 2
    assert len(server.heads) == 1  # the same address twice is one


async def test_a_file_is_fetched_once_for_a_conversation_and_again_for_another_caller() -> None:
    async with library() as (running, google, server):
        body = history(f"http://files.example:{server.port}/a.png")
        for key in (KEY, KEY, OTHER):
            running.headers = {"x-api-key": key}
            assert (await running.post(**body)).status == 200
        assert len(server.heads) == 2
    assert google.arrived[0].body["contents"] == google.arrived[1].body["contents"]


async def test_q9_files_of_a_request_are_bounded_together() -> None:
    def several(server: Server, count: int) -> dict[str, Any]:
        content = [
            {
                "type": "image",
                "source": {"type": "url", "url": f"http://files.example:{server.port}/{number}.png"},
            }
            for number in range(count)
        ]
        return {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}

    async with library(max_bytes=100, max_files=3) as (running, _, server):
        assert (await running.post(**several(server, 2))).status == 200
        large = await running.post(**several(server, 3))
        assert (large.status, "together are larger than 100 bytes" in await large.text()) == (400, True)
        many = await running.post(**several(server, 4))
        assert (many.status, "at most 3 files" in await many.text()) == (400, True)
        assert len(server.heads) == 3


async def test_q9_files_of_a_request_are_bounded_in_time_together() -> None:
    async def wait(writer: asyncio.StreamWriter, path: str) -> None:
        await asyncio.sleep(3600)

    async with library(wait, timeout_s=0.3) as (running, google, server):
        content = [
            {
                "type": "image",
                "source": {"type": "url", "url": f"http://files.example:{server.port}/{number}.png"},
            }
            for number in range(12)
        ]
        said = [{"role": "user", "content": content}]
        response = await running.post(model="claude-x", max_tokens=9, messages=said)
        assert response.status == 400
        assert len(server.heads) <= 4  # the rest was never begun
        assert google.arrived == []


@pytest.mark.parametrize(
    "address",
    [
        "https://generativelanguage.googleapis.com/v1beta/files/abc",
        "https://www.youtube.com/watch?v=abc",
        "https://youtu.be/abc",
        "gs://bucket/a.png",
    ],
)
async def test_j4_what_google_reads_itself_is_left_to_google(address: str) -> None:
    async with library() as (running, google, _):
        contents = [{"role": "user", "parts": [{"fileData": {"fileUri": address, "mimeType": "video/mp4"}}]}]
        response = await running.post("/v1beta/models/gemini-3.8-flash:generateContent", contents=contents)
        assert response.status == 200
        assert parts_of(google)[0]["fileData"]["fileUri"] == address
