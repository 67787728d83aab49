"""Stage 3: what may be shown to the model, and where it may lie."""

from __future__ import annotations

import base64
import json

import pytest

from tests.unit.emulator.builders import (
    VERTEX,
    Json,
    ask,
    error,
    function_responses,
    hello,
    message,
    model_calls,
    send,
    talk,
    user,
)

BAD_IMAGE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)
IMAGES = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff\xe0",
    "webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "heic": b"\0\0\0\x18ftypheic",
}


def shown(kind: str, data: bytes) -> Json:
    blob = {"mimeType": kind, "data": base64.b64encode(data).decode()}
    return talk({"role": "user", "parts": [{"inlineData": blob}]})


def linked(address: str, mime: str = "image/png") -> Json:
    return talk({"role": "user", "parts": [{"fileData": {"mimeType": mime, "fileUri": address}}]})


@pytest.mark.parametrize("data", [b"hello", b"GIF89a", b"\x89PNG", b"RIFF\x24\0\0\0WAVE", b""])
@pytest.mark.parametrize("kind", IMAGES)
def test_an_image_that_is_none_cannot_be_processed(kind: str, data: bytes) -> None:
    assert message(shown(f"image/{kind}", data)) == BAD_IMAGE


@pytest.mark.parametrize(("kind", "data"), IMAGES.items())
def test_images_pass_whatever_kind_they_are_called(kind: str, data: bytes) -> None:
    ask(shown(f"image/{kind}", data))
    ask(shown("image/png", data))


def test_a_broken_image_inside_a_response_is_refused_too() -> None:
    content = function_responses("f")
    blob = {"mimeType": "image/png", "data": base64.b64encode(b"hello").decode()}
    content["parts"][0]["functionResponse"]["parts"] = [{"inlineData": blob}]
    assert message(talk(user("a"), model_calls("f"), content)) == BAD_IMAGE


def test_other_media_are_not_looked_into_but_may_not_be_empty() -> None:
    ask(shown("application/pdf", b"hello"))
    assert (
        error(shown("application/pdf", b""))["details"][0]["detail"] == "emulator: empty application/pdf data"
    )


@pytest.mark.parametrize("kind", ["image/gif", "application/zip", "application/vnd.ms-excel"])
def test_unreadable_kinds_are_named(kind: str) -> None:
    assert message(shown(kind, b"x")) == f"Unsupported MIME type: {kind}"


def test_buckets_are_read_by_vertex_only() -> None:
    body = linked("gs://bucket/picture.png")
    assert message(body) == "Invalid or unsupported file uri: gs://bucket/picture.png"
    ask(body, path=VERTEX)


def test_vertex_may_not_read_the_files_of_ai_studio() -> None:
    body = linked("https://generativelanguage.googleapis.com/v1beta/files/abc")
    answer = send(body, path=VERTEX)
    assert (answer.status, json.loads(answer.body)["error"]["status"]) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize("path", ["/v1beta/models/{}:{}", VERTEX])
def test_addresses_of_the_web_are_taken(path: str) -> None:
    ask(linked("https://example.org/picture.png"), path=path)


def test_a_system_instruction_is_text_of_whatever_role() -> None:
    ask(hello(systemInstruction={"role": "nobody", "parts": [{"text": "x"}]}))
    blob = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(IMAGES["png"]).decode()}}
    found = error(hello(systemInstruction={"parts": [blob]}))
    assert found["details"][0]["detail"] == "emulator: system_instruction takes text parts only"


def test_a_system_instruction_is_no_bare_string() -> None:
    assert message(hello(systemInstruction="be kind")).startswith(
        "Invalid value at 'system_instruction' (type."
    )
