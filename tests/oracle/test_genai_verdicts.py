"""What Google's own recorded tests saw accepted and refused, the emulator accepts and refuses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import httpx2
import msgspec
import pytest
from _pytest.outcomes import Failed, Skipped
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

from dragoman.emulator.http_messages import HttpRequest, HttpResponse
from dragoman.emulator.service import EmulatorService
from tests.oracle.genai_suite import Case, collect, prepared

Surface = Literal["studio", "vertex"]

#: Why the emulator says something else than the recording; each reason with its cases.
EXPLANATIONS = Path(__file__).with_name("genai_verdicts.toml")

PAGE = Path(__file__).parents[2] / "docs" / "emulator-rules.md"

#: Recorded with models that are gone: a living one of the same behaviour answers in their place.
REPLACED = {
    r"gemini-(1\.[05]|2\.0)[\w.-]*": "gemini-2.5-flash",
    r"gemini-3-pro-preview": "gemini-3.1-pro-preview",
    r"test-model[12]": "gemini-4-argon",  # unpublished, made for long answers
}
#: What the emulator serves; a test that asks anything else has no verdict here.
SERVED = re.compile(
    r".*:(generate|streamGenerate|embed)Content|.*:(count|compute)Tokens|.*:batchEmbedContents"
    r"|.*gemini-embedding[^/]*:predict|/v\w+/models(/(?!.*operations/).+)?|.*/publishers/google/models(/[^/:]+)?"
    r"|.*/cachedContents(/.+)?|.*/files(/.+)?"
)
#: What the recorder's projects held: it is made in the emulator when a test first names it.
RECORDED = re.compile(
    rb"(?P<cache>(projects/\w+/locations/[\w-]+/)?cachedContents/(idv6zldt3p2f1lbm31vn41tx2ld42qngpcnka2s3"
    rb"|o239k1gxzz0juy9wqstndhncr85krehehf551hqh|8163416782997028864|2164089915711684608))"
    rb"|(?P<file>files/[a-z0-9]{12}\b)"
)
#: Large enough for a cache as a document, small enough for the window as a text.
RECORDED_FILE = bytes(4_120_000)
#: Names that only the other back end's project held.
FOREIGN = {"studio": re.compile(rb"\d{19}"), "vertex": re.compile(rb"/[a-z]\w{39}|files/")}


class Verdict(msgspec.Struct, frozen=True):
    """How one case went: what the recording says, and what came."""

    case: str
    agrees: bool
    seen: str


class Wire(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """The SDK's HTTP client, ending in the emulator instead of the network."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self.service = EmulatorService("verdicts")
        self.asked: list[str] = []
        self.issued = b""
        self.made: dict[bytes, bytes] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._answer(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._answer(request, await request.aread())

    def _answer(self, request: httpx2.Request, body: bytes) -> httpx2.Response:
        self.asked.append(request.url.path)
        path = RECORDED.sub(self._make, request.url.path.encode()).decode()
        for gone, living in REPLACED.items():
            path = re.sub(f"(?<=models/){gone}(?=:|$)", living, path)
        answer = self._ask(
            method=request.method,
            path=path,
            alt=request.url.params.get("alt", ""),
            key=request.headers.get("x-goog-api-key", ""),
            body=body if "/upload/" in path else RECORDED.sub(self._make, body),
            headers=dict(request.headers),
            query=dict(request.url.params),
        )
        content = b"".join(act for act in answer.actions if isinstance(act, bytes))
        self.issued += content
        headers = [("content-type", answer.content_type), *answer.headers]
        return httpx2.Response(answer.status, headers=headers, content=content)

    def _ask(self, **question: Any) -> HttpResponse:
        return self.service.handle(HttpRequest(now="2025-12-01T00:00:00Z", **question))

    def _make(self, match: re.Match[bytes]) -> bytes:
        """The name that the emulator gives to something the recorder had."""
        name = match[0]
        if name in self.issued or FOREIGN[self.surface].search(name):
            return name
        if name not in self.made:
            self.made[name] = self._make_cache() if match["cache"] else self._make_file()
        return self.made[name]

    def _make_cache(self) -> bytes:
        vertex = self.surface == "vertex"
        model = "publishers/google/models/gemini-2.5-flash" if vertex else "models/gemini-2.5-flash"
        body = {"model": model, "contents": [{"role": "user", "parts": [{"text": "long " * 2000}]}]}
        path = "/v1beta1/projects/p/locations/us-central1" if vertex else "/v1beta"
        answer = self._ask(method="POST", path=f"{path}/cachedContents", body=json.dumps(body).encode())
        name: str = json.loads(answer.body)["name"]
        return name.encode()

    def _make_file(self) -> bytes:
        headers = {"x-goog-upload-protocol": "raw", "content-type": "application/pdf"}
        answer = self._ask(method="POST", path="/upload/v1beta/files", headers=headers, body=RECORDED_FILE)
        name: str = json.loads(answer.body)["file"]["name"]
        return name.encode()


def make_client(surface: Surface, wire: Wire, options: dict[str, Any]) -> genai.Client:
    # The suite was recorded with v1beta, the default of the SDK until 3.0.
    version = options.get("api_version", "v1beta" if surface == "studio" else "v1beta1")
    http = types.HttpOptions(
        api_version=version,
        httpx_client=httpx2.Client(transport=wire),
        httpx_async_client=httpx2.AsyncClient(transport=wire),
    )
    if surface == "studio":
        return genai.Client(api_key="any", http_options=http)
    token = Credentials(token="any")  # type: ignore[no-untyped-call]
    return genai.Client(
        vertexai=True, project="p", location="us-central1", credentials=token, http_options=http
    )


def judge(case: Case, surface: Surface) -> Verdict | None:
    """The verdict of one case, or None if nothing reached the wire that the emulator serves."""
    wire = Wire(surface)
    client = make_client(surface, wire, case.http_options)
    problem: BaseException | None = None
    try:
        case.run(client)
    except (Exception, Failed, Skipped) as error:
        problem = error
    finally:
        client.close()
    if (
        isinstance(problem, Skipped)
        or not wire.asked
        or not all(SERVED.fullmatch(path) for path in wire.asked)
    ):
        return None
    seen = f"{type(problem).__name__}: {problem}".replace("\n", " ")[:300] if problem else "accepted"
    if case.expected is None:
        # Whatever else a test function asserts is about the answer's words, not about the verdict.
        missed = isinstance(problem, Failed) and re.search(r"(Client|Server|API)Error", str(problem))
        return Verdict(case.name, not (missed or isinstance(problem, errors.APIError)), seen)
    words = case.expected.get(surface)
    refused = isinstance(problem, errors.APIError)
    return Verdict(case.name, refused and words in str(problem) if words else not refused, seen)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Verdict]]:
    with prepared(tmp_path_factory.mktemp("suite")):
        cases = collect()
        return {
            surface: [verdict for case in cases if (verdict := judge(case, surface)) is not None]
            for surface in FLOORS
        }


def explained(surface: Surface) -> dict[str, str]:
    """Case name to reason."""
    reasons = tomllib.loads(EXPLANATIONS.read_text("utf-8"))[surface]
    pairs = [(case, reason["why"]) for reason in reasons for case in reason["cases"]]
    assert len(pairs) == len(dict(pairs)), "a case is explained twice"
    return dict(pairs)


#: (least share that agrees, least number of cases): the suite must not shrink unseen.
FLOORS: dict[Surface, tuple[float, int]] = {"studio": (0.95, 380), "vertex": (0.92, 360)}


@pytest.mark.parametrize("surface", FLOORS)
def test_what_google_recorded_is_what_the_emulator_says(
    verdicts: dict[str, list[Verdict]], surface: Surface
) -> None:
    share, number = FLOORS[surface]
    found = verdicts[surface]
    agreed = sum(verdict.agrees for verdict in found)
    assert len(found) >= number
    assert agreed >= share * len(found)
    assert f"{agreed} of {len(found)}" in PAGE.read_text("utf-8"), "the page says something else"


@pytest.mark.parametrize("surface", FLOORS)
def test_every_disagreement_is_explained_and_every_explanation_is_needed(
    verdicts: dict[str, list[Verdict]], surface: Surface
) -> None:
    differ = {verdict.case: verdict.seen for verdict in verdicts[surface] if not verdict.agrees}
    known = explained(surface)
    assert {case: seen for case, seen in differ.items() if case not in known} == {}
    assert sorted(known.keys() - differ.keys()) == []


def test_explanations_are_sentences() -> None:
    for surface in FLOORS:
        assert all(len(why) > 40 for why in explained(surface).values())
