"""Pictures, files and sounds inside messages and outputs."""

from __future__ import annotations

import pytest

from dragoman.ir import Media, Text
from tests.unit.dialects.builders import PIXEL
from tests.unit.dialects.openai_responses.builders import PICTURE, Json, notes, parts, refused, user

IMAGE = Media(mime="image/png", data=PIXEL)
PDF = Media(mime="application/pdf", data="JVBERi0=")

READ: list[tuple[Json, tuple[Text | Media, ...]]] = [
    ({"type": "text", "text": "plain"}, (Text(text="plain"),)),
    ({"text": "no type"}, (Text(text="no type"),)),
    ({"type": "input_text", "text": None}, (Text(text=""),)),
    ({"type": "refusal"}, (Text(text=""),)),
    ({"type": "input_image", "image_url": PICTURE, "detail": "high"}, (IMAGE,)),
    ({"type": "input_image", "image_url": {"url": PICTURE}}, (IMAGE,)),
    ({"type": "image_url", "image_url": {"url": PICTURE}}, (IMAGE,)),
    (
        {"type": "input_image", "image_url": "https://x.test/a.JPG?s=1#f"},
        (Media(mime="image/jpeg", uri="https://x.test/a.JPG?s=1#f"),),
    ),
    (
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        (Text(text="a.pdf"), PDF),
    ),
    ({"type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0="}, (Text(text="a.pdf"), PDF)),
    (
        {"type": "input_file", "file_url": "https://x.test/a.pdf"},
        (Media(mime="application/pdf", uri="https://x.test/a.pdf"),),
    ),
    (
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        (Media(mime="audio/wav", data="UklG"),),
    ),
    (
        {"type": "input_audio", "audio_url": "data:audio/mp3;base64,SUQz"},
        (Media(mime="audio/mp3", data="SUQz"),),
    ),
    ({"type": "encrypted_content"}, (Text(text=""),)),
]


@pytest.mark.parametrize(("content", "wanted"), READ)
def test_content_is_read(content: Json, wanted: tuple[Text | Media, ...]) -> None:
    assert parts(user(content)) == wanted
    assert notes(user(content)) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"type": "input_image", "image_url": "https://x.test/a"}, "(image: https://x.test/a)"),
        ({"type": "input_file", "file_url": "https://x.test/a"}, "(file: https://x.test/a)"),
    ],
)
def test_an_address_of_unknown_type_is_named_and_noted(content: Json, words: str) -> None:
    assert parts(user(content)) == (Text(text=words),)
    (note,) = notes(user(content))
    assert note.startswith("moved input[0].content[0].")


@pytest.mark.parametrize(
    ("content", "where", "words"),
    [
        ({"type": "input_image", "file_id": "file_1"}, ".file_id", "not kept here"),
        ({"type": "input_file", "file_id": "file_1"}, ".file_id", "not kept here"),
        ({"type": "input_image"}, "", "needs an image_url"),
        ({"type": "input_image", "image_url": {"url": ""}}, "", "needs an image_url"),
        ({"type": "input_image", "image_url": "data:image/png,raw"}, ".image_url", "base64"),
        ({"type": "input_file"}, "", "needs file_data"),
        ({"type": "input_file", "file_data": "AAAA"}, ".file_data", "filename"),
        ({"type": "input_file", "file_data": "AAAA", "filename": "a.xyz"}, ".file_data", "filename"),
        ({"type": "input_audio"}, ".input_audio", "needs data"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, ".input_audio", "needs data"),
        ({"type": "input_audio", "input_audio": {"format": "wav"}}, ".input_audio", "needs data"),
        ({"type": "smell"}, "", "'smell' is not understood"),
        ({}, "", "not understood"),
    ],
)
def test_content_that_cannot_be_read_is_refused_at_its_place(content: Json, where: str, words: str) -> None:
    error = refused(user(content))
    assert error.where == f"input[0].content[0]{where}"
    assert words in error.message
