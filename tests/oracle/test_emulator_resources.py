"""Google's own SDK uses the emulator's resources: files, caches, embeddings, pages, tools that run by themselves."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.auth.credentials import AnonymousCredentials
from google.genai import errors, types

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.http_server import serve_in_thread
from dragoman.emulator.service import EmulatorService, HttpRequest

# google-genai 3.1 subclasses aiohttp's session, which aiohttp 3.14 discourages; it can go when the SDK stops.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

MODEL = "gemini-3.8-flash"
LONG = "word " * 4000  # 5000 tokens


class Emulator:
    """An emulator that remembers what it refused."""

    def __init__(self) -> None:
        self.url = ""
        self.renew()

    def renew(self) -> None:
        self._service = EmulatorService("oracle")
        self.refusals: list[str] = []

    def answer(self, question: HttpRequest) -> HttpResponse:
        answer = self._service.handle(question)
        if answer.status != 200:
            self.refusals.append(f"{question.method} {question.path}: {answer.body.decode()}")
        return answer

    def expect_refusals(self, number: int) -> None:
        assert len(self.refusals) == number, self.refusals
        self.refusals.clear()


@pytest.fixture(scope="module")
def shared_emulator() -> Iterator[Emulator]:
    emulator = Emulator()
    with serve_in_thread(emulator.answer) as emulator.url:
        yield emulator


@pytest.fixture(autouse=True)
def emulator(shared_emulator: Emulator) -> Iterator[Emulator]:
    """Empty shelves for every test; what it does not expect to be refused must be accepted."""
    shared_emulator.renew()
    yield shared_emulator
    assert not shared_emulator.refusals, shared_emulator.refusals


@pytest.fixture(scope="module", params=["v1", "v1beta"])
def client(shared_emulator: Emulator, request: pytest.FixtureRequest) -> Iterator[genai.Client]:
    """Shared, because it takes the SDK a second to make one."""
    options = types.HttpOptions(base_url=shared_emulator.url, api_version=request.param)
    with genai.Client(api_key="any", http_options=options) as client:
        yield client


@pytest.fixture(scope="module")
def vertex(shared_emulator: Emulator) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=shared_emulator.url)
    credentials = AnonymousCredentials()
    credentials.token = "any"
    with genai.Client(
        vertexai=True, project="p", location="global", credentials=credentials, http_options=options
    ) as client:
        yield client


def get_weather(city: str) -> str:
    """The current weather of a city."""
    return f"sunny in {city}"


def get_time() -> str:
    """What time it is."""
    return "noon"


TOOLS: list[Any] = [get_weather, get_time]
ASKED = (
    'use get_weather with {"city":"Oslo"} and use get_time with {} then use get_weather with {"city":"Rome"}'
)
REPORT = "get_weather returned: sunny in Oslo\nget_time returned: noon\nget_weather returned: sunny in Rome"
STEPS = 'use get_weather with {"city":"Bern"} then use get_time with {}'
STEPS_REPORT = "get_weather returned: sunny in Bern\nget_time returned: noon"


def test_functions_call_themselves(client: genai.Client) -> None:
    config = types.GenerateContentConfig(tools=TOOLS)
    answer = client.models.generate_content(model=MODEL, contents=ASKED, config=config)
    assert answer.text == REPORT
    assert len(answer.automatic_function_calling_history or []) == 5


def test_functions_call_themselves_in_a_stream(client: genai.Client) -> None:
    config = types.GenerateContentConfig(tools=TOOLS)
    chunks = client.models.generate_content_stream(model=MODEL, contents=STEPS, config=config)
    assert "".join(chunk.text or "" for chunk in chunks) == STEPS_REPORT


def test_parallel_calls_in_a_stream_break_the_sdk_as_they_do_at_google(
    client: genai.Client, emulator: Emulator
) -> None:
    """It sends each chunk back as a content of its own, which Google refuses (go-genai 692, js-genai 1275)."""
    config = types.GenerateContentConfig(tools=TOOLS)
    with pytest.raises(errors.ClientError, match="number of function response parts"):
        list(client.models.generate_content_stream(model=MODEL, contents=ASKED, config=config))
    emulator.expect_refusals(1)


def test_functions_call_themselves_in_a_chat_that_goes_on(client: genai.Client) -> None:
    chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=TOOLS))
    assert chat.send_message(ASKED).text == REPORT
    assert chat.send_message("say thanks").text == "thanks"
    streamed = chat.send_message_stream('use get_weather with {"city":"Bern"}')
    assert "".join(chunk.text or "" for chunk in streamed) == "get_weather returned: sunny in Bern"
    assert chat.send_message("say bye").text == "bye"


async def test_functions_call_themselves_asynchronously(emulator: Emulator) -> None:
    options = types.HttpOptions(base_url=emulator.url)
    config = types.GenerateContentConfig(tools=TOOLS)
    async with genai.Client(api_key="any", http_options=options).aio as client:
        chat = client.chats.create(model=MODEL, config=config)
        assert (await chat.send_message(ASKED)).text == REPORT
        chunks = [chunk.text or "" async for chunk in await chat.send_message_stream(STEPS)]
        assert "".join(chunks) == STEPS_REPORT
        uploaded = await client.files.upload(file=io.BytesIO(b"t" * 40), config={"mime_type": "text/plain"})
        assert uploaded.state == types.FileState.ACTIVE


def test_a_file_is_uploaded_used_listed_and_deleted(
    client: genai.Client, emulator: Emulator, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("t" * 4000)
    file = client.files.upload(file=notes, config={"display_name": "Notes"})
    assert (file.display_name, file.mime_type, file.size_bytes) == ("Notes", "text/plain", 4000)
    assert file.name
    told: list[types.PartUnionDict] = ["look", file]
    answer = client.models.generate_content(model=MODEL, contents=told)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == 1001
    assert answer.text == "This is the offline Gemini emulator. I can see text/plain. You said: look"
    assert [one.name for one in client.files.list()] == [file.name]
    assert client.files.get(name=file.name) == file
    client.files.delete(name=file.name)
    with pytest.raises(errors.ClientError, match="or it may not exist") as gone:
        client.files.get(name=file.name)
    assert gone.value.code == 403
    emulator.expect_refusals(1)


def test_a_large_file_goes_up_in_chunks(client: genai.Client) -> None:
    data = b"x" * (8 * 1024 * 1024 + 5)
    file = client.files.upload(
        file=io.BytesIO(data), config={"mime_type": "application/pdf", "name": "big-one"}
    )
    assert (file.name, file.size_bytes) == ("files/big-one", len(data))


def test_files_come_in_pages(client: genai.Client) -> None:
    names = [
        client.files.upload(file=io.BytesIO(b"x"), config={"mime_type": "text/plain"}).name for _ in range(5)
    ]
    pager = client.files.list(config={"page_size": 2})
    assert len(pager.page) == 2
    assert [file.name for file in pager] == names[::-1]


def test_a_cache_is_made_used_prolonged_and_deleted(client: genai.Client, emulator: Emulator) -> None:
    cached = client.caches.create(
        model=MODEL,
        config=types.CreateCachedContentConfig(
            contents=LONG, system_instruction="Be brief.", ttl="600s", display_name="Long"
        ),
    )
    check_cache(client, cached, 5003)
    with pytest.raises(errors.ClientError, match="CachedContent not found") as gone:
        client.caches.get(name=cached.name or "")
    assert (gone.value.code, gone.value.status) == (403, "PERMISSION_DENIED")
    emulator.expect_refusals(1)


def test_a_cache_on_vertex(vertex: genai.Client, emulator: Emulator) -> None:
    contents = [types.Content(role="user", parts=[types.Part(text=LONG)])]
    cached = vertex.caches.create(
        model=MODEL, config=types.CreateCachedContentConfig(contents=contents, ttl="600s")
    )
    assert (cached.name or "").startswith("projects/p/locations/global/cachedContents/")
    check_cache(vertex, cached, 5000)
    with pytest.raises(errors.ClientError) as gone:
        vertex.caches.get(name=cached.name or "")
    assert (gone.value.code, gone.value.status) == (404, "NOT_FOUND")
    emulator.expect_refusals(1)


def check_cache(client: genai.Client, cached: types.CachedContent, tokens: int) -> None:
    assert cached.name
    assert cached.create_time
    assert cached.expire_time
    assert (cached.expire_time - cached.create_time).total_seconds() == 600
    assert cached.usage_metadata is not None
    assert cached.usage_metadata.total_token_count == tokens
    config = types.GenerateContentConfig(cached_content=cached.name)
    answer = client.models.generate_content(model=MODEL, contents="say hello", config=config)
    assert answer.text == "hello"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.cached_content_token_count == tokens
    assert [one.name for one in client.caches.list(config={"page_size": 1})] == [cached.name]
    later = client.caches.update(name=cached.name, config={"ttl": "7200s"})
    assert later.expire_time
    assert later.expire_time > cached.expire_time
    client.caches.delete(name=cached.name)


def test_a_cache_that_is_too_small_is_refused(client: genai.Client, emulator: Emulator) -> None:
    with pytest.raises(errors.ClientError, match="Cached content is too small"):
        client.caches.create(model=MODEL, config={"contents": "short"})
    emulator.expect_refusals(1)


@pytest.mark.parametrize("model", ["gemini-embedding-001", "gemini-embedding-2"])
def test_embeddings(client: genai.Client, vertex: genai.Client, model: str) -> None:
    config = types.EmbedContentConfig(output_dimensionality=16, task_type="RETRIEVAL_DOCUMENT", title="Cats")
    vectors = []
    for each in (client, vertex):
        answer = each.models.embed_content(model=model, contents="a cat sleeps", config=config)
        (embedding,) = answer.embeddings or []
        vectors.append(embedding.values or [])
    assert vectors[0] == pytest.approx(vectors[1])
    assert len(vectors[0]) == 16


def test_many_texts_are_embedded_at_once(client: genai.Client) -> None:
    texts: list[types.PartUnionDict] = ["a cat", "a ship"]
    answer = client.models.embed_content(model="gemini-embedding-001", contents=texts)
    assert [len(embedding.values or []) for embedding in answer.embeddings or []] == [3072, 3072]


def test_models_come_in_pages(client: genai.Client, vertex: genai.Client) -> None:
    for each in (client, vertex):
        whole = [model.name for model in each.models.list()]
        pager = each.models.list(config={"page_size": 3})
        assert len(pager.page) == 3
        assert [model.name for model in pager] == whole
        assert len(whole) > 10
    embedders = [
        model.name for model in client.models.list() if "embedContent" in (model.supported_actions or [])
    ]
    assert embedders == ["models/gemini-embedding-2", "models/gemini-embedding-001"]


def test_tokens_are_counted_and_shown(client: genai.Client, vertex: genai.Client) -> None:
    contents = [types.Content(role="user", parts=[types.Part(text="hello world!")])]
    for each in (client, vertex):
        assert each.models.count_tokens(model=MODEL, contents=contents).total_tokens == 3
    (info,) = vertex.models.compute_tokens(model=MODEL, contents=contents).tokens_info or []
    assert b"".join(info.tokens or []) == b"hello world!"
