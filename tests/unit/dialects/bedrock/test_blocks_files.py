"""Images, documents, videos and sound: what Gemini reads goes there, everything else is refused by name."""

from __future__ import annotations

import pytest

from dragoman.dialects.bedrock.blocks import MIMES
from dragoman.ir import Media, Part, Text
from tests.unit.dialects.bedrock.builders import PDF, Json, document, image, parts, refused, user
from tests.unit.dialects.builders import PIXEL

SOURCE = {"bytes": "AAAA"}


@pytest.mark.parametrize(
    ("block", "mime"),
    [
        (image("png"), "image/png"),
        (image("jpeg"), "image/jpeg"),
        (image("webp"), "image/webp"),
        (image("gif"), "image/gif"),  # told in words later: Gemini reads no GIF
    ],
)
def test_images(block: Json, mime: str) -> None:
    assert parts(user(block)) == [Media(mime=mime, data=PIXEL)]


@pytest.mark.parametrize(
    ("form", "mime"),
    [
        ("pdf", "application/pdf"),
        ("csv", "text/csv"),
        ("html", "text/html"),
        ("txt", "text/plain"),
        ("md", "text/plain"),
    ],
)
def test_documents(form: str, mime: str) -> None:
    assert parts(user(document(form))) == [Text(text="report"), Media(mime=mime, data=PDF)]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (document(None, "t", {"text": "words"}), [Text(text="t"), Text(text="words")]),
        (document("docx", "t", {"text": "words"}), [Text(text="t"), Text(text="words")]),
        (
            document(None, "t", {"content": [{"text": "a"}, {"text": "b"}]}),
            [Text(text="t"), Text(text="a"), Text(text="b")],
        ),
        (
            document(context="from work"),
            [Text(text="report from work"), Media(mime="application/pdf", data=PDF)],
        ),
        (document(None, "Report.PDF"), [Text(text="Report.PDF"), Media(mime="application/pdf", data=PDF)]),
        (document(name=""), [Media(mime="application/pdf", data=PDF)]),
    ],
)
def test_forms_of_documents(block: Json, expected: list[Part]) -> None:
    assert parts(user(block)) == expected


@pytest.mark.parametrize(
    ("kind", "form", "mime"),
    [
        ("video", "mp4", "video/mp4"),
        ("video", "mov", "video/quicktime"),
        ("video", "three_gp", "video/3gpp"),
        ("video", "flv", "video/x-flv"),
        ("audio", "mp3", "audio/mp3"),
        ("audio", "mpga", "audio/mp3"),
        ("audio", "opus", "audio/ogg"),
        ("audio", "x-aac", "audio/aac"),
        ("audio", "wav", "audio/wav"),
    ],
)
def test_recordings(kind: str, form: str, mime: str) -> None:
    assert parts(user({kind: {"format": form, "source": SOURCE}})) == [Media(mime=mime, data="AAAA")]


@pytest.mark.parametrize(
    ("block", "where", "why"),
    [
        (
            document("docx"),
            "document.format",
            "no document in the format 'docx': send pdf, csv, html, txt, md",
        ),
        (document("xlsx"), "document.format", "'xlsx'"),
        (document("doc"), "document.format", "'doc'"),
        (document("xls"), "document.format", "'xls'"),
        (document(None), "document.format", "'report'"),
        (image("bmp"), "image.format", "'bmp'"),
        ({"video": {"format": "mkv", "source": SOURCE}}, "video.format", "'mkv'"),
        ({"audio": {"format": "mka", "source": SOURCE}}, "audio.format", "'mka'"),
        (
            image(s3Location={"uri": "s3://bucket/a.png"}),
            "image.source.s3Location",
            "files in S3 cannot be read from here: send the bytes",
        ),
        (document(source={"s3Location": {"uri": "s3://b/a"}}), "document.source.s3Location", "S3"),
        (
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/a"}}}},
            "video.source.s3Location",
            "S3",
        ),
        (image(url="https://h/a.png"), "image.source.url", "send bytes"),
        (image(bytes=""), "image.source.bytes", "the image is empty"),
        (image(bytes=5), "image.source.bytes", "str"),
        (image(bytes=None), "image.source.bytes", "str"),
        (image(bytes=None, s3Location=None), "image.source", "exactly one member"),
        (document(source={"content": [{"image": {}}]}), "document.source.content[0]", "use text"),
        (document(source={"content": 5}), "document.source.content", "array"),
        (document(source={"text": 5}), "document.source.text", "str"),
    ],
)
def test_j_what_cannot_be_read_is_refused_never_dropped(block: Json, where: str, why: str) -> None:
    error = refused(user("look", block))
    assert error.where == f"messages[0].content[1].{where}"
    assert why in error.message


def test_every_media_type_is_one() -> None:
    assert set(MIMES) == {"image", "document", "video", "audio"}
    assert all("/" in mime for kind in MIMES.values() for mime in kind.values())
