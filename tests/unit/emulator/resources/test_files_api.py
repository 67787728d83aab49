"""The Files API: the upload protocol step by step, the life of a file, and files inside requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.resources.files import CHUNK_GRANULARITY
from dragoman.emulator.resources.resource_store import ResourceStore
from tests.unit.emulator.resources.resource_client import Json, ResourceClient, header, user

UPLOAD = "/upload/v1beta/files"
GENERATE = "/v1beta/models/gemini-3.8-flash:generateContent"
GONE = "You do not have permission to access the File {} or it may not exist."


@pytest.fixture
def desk() -> ResourceClient:
    return ResourceClient()


def start(
    desk: ResourceClient, file: Json | None = None, *, size: int | None = None, mime: str = "text/plain"
) -> HttpResponse:
    headers = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-type": mime,
    }
    if size is not None:
        headers["x-goog-upload-header-content-length"] = str(size)
    return desk.ask("POST", UPLOAD, {"file": file or {}}, headers)


def session(answer: HttpResponse) -> str:
    assert answer.status == 200, answer.body.decode()
    url = urlsplit(header(answer, "x-goog-upload-url"))
    assert (url.scheme, url.netloc) == ("http", "127.0.0.1:8378")
    return f"{url.path}?{url.query}"


def command(
    desk: ResourceClient, url: str, words: str, data: bytes = b"", offset: int | None = None
) -> HttpResponse:
    headers = {"x-goog-upload-command": words}
    if offset is not None:
        headers["x-goog-upload-offset"] = str(offset)
    return desk.ask("POST", url, data, headers)


def upload(desk: ResourceClient, data: bytes, mime: str = "text/plain", **file: str) -> Json:
    url = session(start(desk, file, size=len(data), mime=mime))
    answer = command(desk, url, "upload, finalize", data, 0)
    assert answer.status == 200, answer.body.decode()
    assert header(answer, "x-goog-upload-status") == "final"
    made: Json = json.loads(answer.body)["file"]
    return made


def test_one_chunk_makes_a_file(desk: ResourceClient) -> None:
    made = upload(desk, b"hello world", displayName="Greeting")
    digest = hashlib.sha256(b"hello world").hexdigest()
    assert re.fullmatch(r"files/[a-z0-9]{12}", made["name"])
    assert made == {
        "name": made["name"],
        "displayName": "Greeting",
        "mimeType": "text/plain",
        "sizeBytes": "11",
        "createTime": "2026-11-15T12:00:00.000000Z",
        "updateTime": "2026-11-15T12:00:00.000000Z",
        "expirationTime": "2026-11-17T12:00:00.000000Z",
        "sha256Hash": base64.b64encode(digest.encode()).decode(),
        "uri": f"http://127.0.0.1:8378/v1beta/{made['name']}",
        "state": "ACTIVE",
        "source": "UPLOADED",
    }
    assert desk.good("GET", f"/v1beta/{made['name']}") == made


def test_chunks_are_joined_in_order_and_the_offset_can_be_asked_for(desk: ResourceClient) -> None:
    first = b"a" * CHUNK_GRANULARITY
    started = start(desk, size=CHUNK_GRANULARITY + 3)
    assert header(started, "x-goog-upload-chunk-granularity") == str(CHUNK_GRANULARITY)
    assert header(started, "x-goog-upload-status") == "active"
    url = session(started)
    sent = command(desk, url, "upload", first, 0)
    assert (sent.status, header(sent, "x-goog-upload-status")) == (200, "active")
    asked = command(desk, url, "query")
    assert header(asked, "x-goog-upload-size-received") == str(CHUNK_GRANULARITY)
    done = command(desk, url, "upload, finalize", b"bcd", CHUNK_GRANULARITY)
    made = json.loads(done.body)["file"]
    digest = hashlib.sha256(first + b"bcd").hexdigest()
    assert base64.b64decode(made["sha256Hash"]).decode() == digest
    assert header(command(desk, url, "query"), "x-goog-upload-status") == "final"


@pytest.mark.parametrize(
    ("data", "words", "offset"),
    [
        (b"12345", "upload, finalize", 3),  # a gap
        (b"1234", "upload, finalize", 0),  # less than announced
        (b"123456", "upload, finalize", 0),  # more than announced
        (b"1234", "upload", 0),  # a small chunk that is not the last
    ],
)
def test_a_chunk_that_does_not_fit_leaves_the_session_open(
    desk: ResourceClient, data: bytes, words: str, offset: int
) -> None:
    url = session(start(desk, size=5))
    refused = command(desk, url, words, data, offset)
    assert (refused.status, header(refused, "x-goog-upload-status")) == (400, "active")
    assert header(command(desk, url, "query"), "x-goog-upload-size-received") == "0"
    assert command(desk, url, "upload, finalize", b"12345", 0).status == 200


@pytest.mark.parametrize("size", [-1, 10**20, 10**12])
def test_a_size_that_cannot_be_is_refused_at_the_start(desk: ResourceClient, size: int) -> None:
    assert start(desk, size=size).status == 400


def test_finalize_may_come_alone_and_only_once(desk: ResourceClient) -> None:
    url = session(start(desk))
    command(desk, url, "upload", b"x" * CHUNK_GRANULARITY, 0)
    assert json.loads(command(desk, url, "finalize").body)["file"]["sizeBytes"] == str(CHUNK_GRANULARITY)
    again = command(desk, url, "upload, finalize", b"y", CHUNK_GRANULARITY)
    assert (again.status, header(again, "x-goog-upload-status")) == (400, "final")
    assert len(desk.good("GET", "/v1beta/files")["files"]) == 1


def test_a_cancelled_session_is_gone(desk: ResourceClient) -> None:
    url = session(start(desk))
    assert header(command(desk, url, "cancel"), "x-goog-upload-status") == "cancelled"
    assert command(desk, url, "upload, finalize", b"x", 0).status == 404


def test_a_name_can_be_wished_for_once(desk: ResourceClient) -> None:
    assert upload(desk, b"x", name="files/my-notes")["name"] == "files/my-notes"
    assert start(desk, {"name": "files/my-notes"}).status == 409
    assert start(desk, {"name": "files/Not_Legal"}).status == 400
    assert start(desk, {"nome": "files/x"}).status == 400


def test_raw_and_multipart_uploads_work_in_one_request(desk: ResourceClient) -> None:
    raw = desk.good("POST", UPLOAD, b"plain", {"x-goog-upload-protocol": "raw", "content-type": "text/csv"})[
        "file"
    ]
    assert (raw["mimeType"], raw["sizeBytes"]) == ("text/csv", "5")
    body = (
        b'--edge\r\nContent-Type: application/json\r\n\r\n{"file":{"displayName":"Two"}}\r\n'
        b"--edge\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\r\n--edge--\r\n"
    )
    headers = {"x-goog-upload-protocol": "multipart", "content-type": "multipart/related; boundary=edge"}
    two = desk.good("POST", UPLOAD, body, headers)["file"]
    assert (two["displayName"], two["mimeType"], two["sizeBytes"]) == ("Two", "image/png", "6")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-goog-upload-protocol": "resumable", "x-goog-upload-command": "upload"},
        {"x-goog-upload-protocol": "multipart", "content-type": "multipart/related; boundary=edge"},
        {"x-goog-upload-protocol": "multipart"},
    ],
)
def test_what_is_no_upload_is_refused(desk: ResourceClient, headers: dict[str, str]) -> None:
    assert desk.ask("POST", UPLOAD, b"{}", headers).status == 400


def test_a_file_lives_two_days(desk: ResourceClient) -> None:
    made = upload(desk, b"x")
    name, place = made["name"], f"/v1beta/{made['name']}"
    desk.advance_clock(hours=47, minutes=59)
    assert desk.good("GET", place)
    desk.advance_clock(minutes=1)
    gone = (403, "PERMISSION_DENIED", GONE.format(name.removeprefix("files/")))
    assert desk.bad("GET", place) == gone
    assert desk.bad("DELETE", place) == gone
    assert desk.bad("POST", GENERATE, {"contents": [user("look", see(made))]}) == gone
    assert desk.good("GET", "/v1beta/files") == {}


def test_deleted_is_gone_and_uploads_cannot_be_downloaded(desk: ResourceClient) -> None:
    place = f"/v1beta/{upload(desk, b'x')['name']}"
    assert desk.bad("GET", f"{place}:download?alt=media")[0] == 400
    assert desk.good("DELETE", place) == {}
    assert desk.bad("GET", place)[0] == 403


def test_the_list_has_ten_to_a_page(desk: ResourceClient) -> None:
    made = [upload(desk, b"%d" % number)["name"] for number in range(12)]
    first = desk.good("GET", "/v1beta/files")
    second = desk.good("GET", f"/v1beta/files?pageToken={first['nextPageToken']}")
    assert len(first["files"]) == 10
    assert [file["name"] for file in first["files"] + second["files"]] == made[::-1]


def see(file: Json, **fields: str) -> Json:
    return {"fileData": {"fileUri": file["uri"], "mimeType": file["mimeType"], **fields}}


def test_a_file_in_a_request_is_seen_and_counted(desk: ResourceClient) -> None:
    made = upload(desk, b"t" * 4000)
    answer = desk.good("POST", GENERATE, {"contents": [user("12345678", see(made))]})
    assert answer["usageMetadata"]["promptTokenCount"] == 1002
    assert "I can see text/plain" in answer["candidates"][0]["content"]["parts"][0]["text"]
    count = GENERATE.replace("generateContent", "countTokens")
    assert desk.good("POST", count, {"contents": [user(see(made))]})["totalTokens"] == 1000


@pytest.mark.parametrize(
    "uri", ["https://generativelanguage.googleapis.com/v1beta/{}", "http://127.0.0.1:1/v1/{}", "{}"]
)
def test_a_file_is_found_by_every_spelling_of_its_address(desk: ResourceClient, uri: str) -> None:
    name = upload(desk, b"t" * 40)["name"]
    part = {"fileData": {"fileUri": uri.format(name)}}
    answer = desk.good("POST", GENERATE, {"contents": [user("look", part)]})
    assert answer["usageMetadata"]["promptTokenCount"] == 11
    assert "I can see text/plain" in answer["candidates"][0]["content"]["parts"][0]["text"]


def test_other_addresses_are_not_looked_up(desk: ResourceClient) -> None:
    video = {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1", "mimeType": "video/mp4"}}
    assert desk.good("POST", GENERATE, {"contents": [user("look", video)]})
    vertex = "/v1/projects/p/locations/global/publishers/google/models/gemini-3.8-flash:generateContent"
    for uri in ("gs://b/files/x", "https://example.com/v1/files/x"):
        part = {"fileData": {"fileUri": uri, "mimeType": "text/plain"}}
        assert desk.good("POST", vertex, {"contents": [user("look", part)]})


def test_wrong_fields_are_reported_before_a_missing_file(desk: ResourceClient) -> None:
    part = {"fileData": {"fileUri": "files/nope"}}
    asked = {"contents": [user("look", part), {"role": "user"}]}
    assert "parts must not be empty" in desk.bad("POST", GENERATE, asked)[2]
    assert desk.bad("POST", GENERATE, {"contents": [user(part)]})[2] == GONE.format("nope")


def test_a_video_is_processed_before_it_can_be_used(desk: ResourceClient) -> None:
    made = upload(desk, b"frames", "video/mp4")
    assert made["state"] == "PROCESSING"
    name = made["name"].removeprefix("files/")
    assert desk.bad("POST", GENERATE, {"contents": [user("look", see(made))]}) == (
        400,
        "FAILED_PRECONDITION",
        f"The File {name} is not in an ACTIVE state and usage is not allowed.",
    )
    desk.advance_clock(seconds=1)
    assert desk.good("GET", f"/v1beta/{made['name']}")["state"] == "ACTIVE"
    assert desk.good("POST", GENERATE, {"contents": [user("look", see(made))]})


def test_a_cache_keeps_the_files_it_was_made_of(desk: ResourceClient) -> None:
    made = upload(desk, b"t" * 40_000)
    body = {"model": "models/gemini-3.8-flash", "contents": [user(see(made))]}
    name = desk.good("POST", "/v1beta/cachedContents", body)["name"]
    desk.good("DELETE", f"/v1beta/{made['name']}")
    answer = desk.good("POST", GENERATE, {"contents": [user("12345678")], "cachedContent": name})
    assert answer["usageMetadata"]["promptTokenCount"] == 10_002


def test_a_file_that_would_push_out_all_others_is_refused(
    desk: ResourceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.emulator.resources.files.MAX_FILE_BYTES", 9)
    monkeypatch.setattr("dragoman.emulator.resources.files.MAX_FILE_BYTES", 9)
    url = session(start(desk))
    refused = command(desk, url, "upload, finalize", b"0123456789", 0)
    assert (refused.status, b"larger than" in refused.body) == (400, True)
    assert desk.ask("POST", UPLOAD, b"0123456789", {"x-goog-upload-protocol": "raw"}).status == 400
    assert command(desk, url, "upload, finalize", b"012345678", 0).status == 200


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def test_the_oldest_goes_when_there_is_no_room() -> None:
    shelf: ResourceStore[str] = ResourceStore(most_bytes=10, most_items=3)
    for name in ("a", "b", "c", "d"):
        shelf.put(name, name, expires=LATER, size=2)
    assert shelf.newest_first(NOON) == ["d", "c", "b"]
    shelf.put("b", "new", expires=LATER, size=2)  # the same name again is not one more
    assert shelf.newest_first(NOON) == ["new", "d", "c"]
    shelf.put("e", "e", expires=LATER, size=7)
    assert shelf.newest_first(NOON) == ["e", "new"]
    shelf.put("big", "big", expires=LATER, size=11)
    assert shelf.newest_first(NOON) == []
    shelf.put("f", "f", expires=LATER, size=10)
    assert shelf.newest_first(NOON) == ["f"]
    assert shelf.get("f", LATER) is None


@pytest.mark.parametrize("mime", ["bad/mime_type", "nonsense", "/png", "image/"])
def test_a_file_of_a_kind_nobody_knows_is_not_kept(desk: ResourceClient, mime: str) -> None:
    raw = {"x-goog-upload-protocol": "raw", "content-type": mime}
    for answer in (start(desk, size=1, mime=mime), desk.ask("POST", UPLOAD, b"x", raw)):
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["message"] == f"Unsupported MIME type: {mime}"
    assert desk.good("GET", "/v1beta/files") == {}


@pytest.mark.parametrize(
    "mime", ["application/zip", "model/stl", "text/markdown; charset=utf-8", "Image/PNG"]
)
def test_a_file_of_a_kind_that_no_model_reads_is_kept_all_the_same(desk: ResourceClient, mime: str) -> None:
    assert upload(desk, b"x", mime)["mimeType"] == mime
