"""The emulator for tests: a server in a thread, with steps added by method calls and recorded requests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

import msgspec

from dragoman.emulator.http_messages import HttpRequest, HttpResponse
from dragoman.emulator.http_server import serve_in_thread as listening
from dragoman.emulator.parsed_request import role_of
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.load import ScriptSource, load_data, load_script
from dragoman.emulator.script.match import METHOD_NAMES
from dragoman.emulator.script.player import ScriptPlayer
from dragoman.emulator.service import EmulatorService

API_KEY = "emulator"
#: Environment variables that would make a Google client bypass the emulator.
CONFLICTING_VARIABLES = ("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")


class ScriptNotFollowed(AssertionError):
    """The requests did not follow the script."""


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded request.

    `method` is generate, stream, count or the name of another method; `status` is the status of the response.
    """

    method: str
    model: str
    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as it was sent; empty if it is no JSON object."""
        try:
            document = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def contents(self) -> list[dict[str, Any]]:
        return _objects(self.json.get("contents"))

    @property
    def last_text(self) -> str:
        """The text of the last user content that has text."""
        for content in reversed(self.contents):
            texts = [part.get("text") for part in _objects(content.get("parts"))]
            said = [text for text in texts if isinstance(text, str) and text]
            if said and role_of(content) == "user":
                return "\n".join(said)
        return ""

    def __repr__(self) -> str:
        # Leave out the headers, which contain the API key, and the body, which can be long.
        return f"<{self.method} {self.model or self.path} {self.status} {self.last_text[:60]!r}>"


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list. Google accepts a single object as a list of one, so this does too."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


class Emulator:
    """A running emulator. The deterministic model answers if there are no steps."""

    def __init__(self, *, seed: str) -> None:
        self.url = ""
        self.requests: list[RecordedRequest] = []
        self._player = ScriptPlayer()
        self._service = EmulatorService(seed, self._player)

    @property
    def env(self) -> dict[str, str]:
        """The environment variables with which a program uses the emulator and not Google."""
        bypass = ",".join(
            filter(None, ["127.0.0.1", os.environ.get("NO_PROXY") or os.environ.get("no_proxy")])
        )
        return {
            "GEMINI_API_KEY": API_KEY,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GOOGLE_VERTEX_BASE_URL": self.url,
            "GEMINI_BASE_URL": self.url,
            "NO_PROXY": bypass,
            "no_proxy": bypass,
        }

    @property
    def otherwise(self) -> Literal["model", "refuse"]:
        """The answer to a request that matches no step."""
        return self._player.otherwise

    @otherwise.setter
    def otherwise(self, value: Literal["model", "refuse"]) -> None:
        self._player.otherwise = load_data({"otherwise": value}).script.otherwise

    def script(self, source: ScriptSource) -> Self:
        """Add a script: a file, its text or a dict."""
        self._player.add(load_script(source))
        return self

    def say(self, text: str) -> Self:
        """Add a step that answers with this text."""
        return self._add_steps(reply=[{"text": text}])

    def call(self, name: str, /, **args: Any) -> Self:
        """Add a step that calls a function."""
        return self.call_all((name, args))

    def call_all(self, *calls: tuple[str, Mapping[str, Any]]) -> Self:
        """Add a step that calls several functions in parallel."""
        return self._add_steps(reply=[{"call": {"name": name, "args": dict(args)}} for name, args in calls])

    def fail(self, fault: str, argument: float | None = None) -> Self:
        """Add a step with a fault, such as `overloaded`, `quota_minute` or `cut_after`.

        `dragoman emulator --list-faults` lists all faults.
        """
        return self._add_steps(fault={fault: argument})

    def problems(self) -> list[str]:
        """Return how the requests deviated from the script so far."""
        return self._player.problems()

    def check(self) -> None:
        """Raise `ScriptNotFollowed` if the requests deviated from the script."""
        problems = self.problems()
        if problems:
            raise ScriptNotFollowed("\n".join(problems))

    def handle(self, http_request: HttpRequest) -> HttpResponse:
        """Answer a request of the HTTP server and record it."""
        response = self._service.handle(http_request)
        route = find_route(http_request.method, http_request.path)
        method = route.method if route is not None else ""
        self.requests.append(
            RecordedRequest(
                method=METHOD_NAMES.get(method, method),
                model=route.model if route is not None else "",
                path=http_request.path,
                status=response.status,
                headers=http_request.headers,
                body=http_request.body,
            )
        )
        return response

    def _add_steps(self, **step: Any) -> Self:
        for one in load_data({"steps": [step]}, "step").script.steps:
            self._player.add_step(one)
        return self


@contextmanager
def running(
    script: ScriptSource | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    seed: str = "dragoman",
    check: bool = True,
) -> Iterator[Emulator]:
    """Run an emulator for the duration of the block.

    With `check`, raise `ScriptNotFollowed` at the end if the requests deviated from the script.
    """
    emulator = Emulator(seed=seed)
    if script is not None:
        emulator.script(script)
    with listening(emulator.handle, host, port) as emulator.url:
        yield emulator
    if check:
        emulator.check()
