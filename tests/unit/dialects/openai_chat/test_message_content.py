"""What users attach: images, audio, files."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import Media, Part, Text, ToolResult
from tests.unit.dialects.builders import PIXEL
from tests.unit.dialects.openai_chat.builders import (
    Json,
    audio,
    file,
    image,
    noted,
    parts,
    refused,
    result,
    text,
    user,
)

DATA = f"data:image/png;base64,{PIXEL}"
PDF = "JVBERi0="

READ: dict[str, tuple[Json, list[Part]]] = {
    "text": (text("a"), [Text(text="a")]),
    "refusal": ({"type": "refusal", "refusal": "no"}, [Text(text="no")]),
    "j2 image as data": (image(DATA), [Media(mime="image/png", data=PIXEL)]),
    "image as DATA": (image(DATA.replace("data:", "DATA:")), [Media(mime="image/png", data=PIXEL)]),
    "image with parameters": (
        image(f"data:image/webp;charset=x;base64,{PIXEL}", detail="auto"),
        [Media(mime="image/webp", data=PIXEL)],
    ),
    "image as bare string": (
        {"type": "image_url", "image_url": DATA},
        [Media(mime="image/png", data=PIXEL)],
    ),
    "image by address": (
        image("https://h/a.JPG?x=1#y"),
        [Media(mime="image/jpeg", uri="https://h/a.JPG?x=1#y")],
    ),
    "wav": (audio(), [Media(mime="audio/wav", data=PIXEL)]),
    "mp3": (audio("MP3"), [Media(mime="audio/mp3", data=PIXEL)]),
    "file as data": (
        file(file_data=f"data:application/pdf;base64,{PDF}"),
        [Media(mime="application/pdf", data=PDF)],
    ),
    "file with a name": (
        file(filename="a.pdf", file_data=f"data:application/pdf;base64,{PDF}"),
        [Text(text="a.pdf"), Media(mime="application/pdf", data=PDF)],
    ),
    "file as bare base64": (
        file(filename="notes.PDF", file_data=PDF),
        [Text(text="notes.PDF"), Media(mime="application/pdf", data=PDF)],
    ),
}


@pytest.mark.parametrize("name", READ)
def test_content_is_read(name: str) -> None:
    wire, expected = READ[name]
    assert parts(user(text("before"), wire)) == (Text(text="before"), *expected)
    assert noted(user(text("before"), wire)) == []


@pytest.mark.parametrize("name", READ)
def test_j1_tools_may_return_it_too(name: str) -> None:
    wire, expected = READ[name]
    assert parts(result([wire])) == (
        ToolResult(call_id="call_1", content=tuple(expected)),  # type: ignore[arg-type]
    )


def test_the_detail_of_an_image_is_dropped_with_a_note() -> None:
    assert noted(user(image(DATA, detail="low"))) == [("dropped", "messages[0].content[0].image_url.detail")]


def test_an_address_of_unknown_kind_is_sent_as_text() -> None:
    wire = user(image("https://h/picture"))
    assert parts(wire) == (Text(text="(image: https://h/picture)"),)
    assert noted(wire) == [("moved", "messages[0].content[0].image_url.url")]


REFUSED: dict[str, tuple[Any, str, str]] = {
    "video": ({"type": "video_url", "video_url": {"url": "x"}}, "", "'video_url' is not understood"),
    "image without url": (image(""), "", "needs a url"),
    "image without anything": ({"type": "image_url"}, "", "needs a url"),
    "data without base64": (image("data:image/png,abc"), ".image_url.url", "base64 data"),
    "audio without data": (audio(data=""), "", "needs base64 data"),
    "audio of unknown format": (audio("midi"), "", "format of wav, mp3"),
    "audio without anything": ({"type": "input_audio"}, "", "needs base64 data"),
    "stored file": (file(file_id="file-1"), ".file", "files are not kept here"),
    "file without data": (file(filename="a.pdf"), ".file", "needs file_data"),
    "file without anything": ({"type": "file"}, ".file", "needs file_data"),
    "file of unknown kind": (file(file_data=PDF), ".file.file_data", "media type is unknown"),
    "file of broken data": (file(file_data="data:x"), ".file.file_data", "base64 data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_passed_on_is_refused_with_its_place(name: str) -> None:
    wire, where, why = REFUSED[name]
    error = refused(user(text("a"), wire))
    assert error.where == f"messages[0].content[1]{where}"
    assert why in error.message
