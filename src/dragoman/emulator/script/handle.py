"""An emulator for tests: a real server in a thread, steps added in one line, and all requests to look at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

import msgspec

from dragoman.emulator.contents import role_of
from dragoman.emulator.http.listen import running as listening
from dragoman.emulator.question import Question
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.load import Source, load_data, load_script
from dragoman.emulator.script.match import METHODS
from dragoman.emulator.script.play import Player
from dragoman.emulator.service import Service
from dragoman.emulator.wire import Answer

KEY = "emulator"
#: Whatever would lead a client of Google's past the emulator.
MISLEADING = ("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")


class ScriptNotFollowed(AssertionError):
    """The program did not do what the script says."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request that came: `method` is generate, stream, count or another of Google's, `status` what it got."""

    method: str
    model: str
    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as it came."""
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
        """The text of the last content that has any and is the user's."""
        for content in reversed(self.contents):
            texts = [part.get("text") for part in _objects(content.get("parts"))]
            said = [text for text in texts if isinstance(text, str) and text]
            if said and role_of(content) == "user":
                return "\n".join(said)
        return ""

    def __repr__(self) -> str:
        # Headers hold the key, and a body can be long: neither belongs into a test's report.
        return f"<{self.method} {self.model or self.path} {self.status} {self.last_text[:60]!r}>"


def _objects(value: Any) -> list[dict[str, Any]]:
    """What can be read of a list of objects; one alone is a list of one, as for Google."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


class Emulator:
    """A running emulator. Without steps the deterministic model answers."""

    def __init__(self, *, seed: str) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self._player = Player()
        self._service = Service(seed, self._player)

    @property
    def env(self) -> dict[str, str]:
        """What a program's environment needs to find the emulator, and nothing of Google."""
        bypass = ",".join(
            filter(None, ["127.0.0.1", os.environ.get("NO_PROXY") or os.environ.get("no_proxy")])
        )
        return {
            "GEMINI_API_KEY": KEY,
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GOOGLE_VERTEX_BASE_URL": self.url,
            "GEMINI_BASE_URL": self.url,
            "NO_PROXY": bypass,
            "no_proxy": bypass,
        }

    @property
    def otherwise(self) -> Literal["model", "refuse"]:
        """What a request gets that no step fits."""
        return self._player.otherwise

    @otherwise.setter
    def otherwise(self, value: Literal["model", "refuse"]) -> None:
        self._player.otherwise = load_data({"otherwise": value}).script.otherwise

    def script(self, source: Source) -> Self:
        """Play a script too: a file, its text or a dict."""
        self._player.add(load_script(source))
        return self

    def say(self, text: str) -> Self:
        """One answer with this text."""
        return self._step(reply=[{"text": text}])

    def call(self, name: str, /, **args: Any) -> Self:
        """One answer that calls a function."""
        return self.call_all((name, args))

    def call_all(self, *calls: tuple[str, Mapping[str, Any]]) -> Self:
        """One answer that calls several functions at once."""
        return self._step(reply=[{"call": {"name": name, "args": dict(args)}} for name, args in calls])

    def fail(self, fault: str, argument: float | None = None) -> Self:
        """One answer with a fault: `overloaded`, `quota_minute`, `cut_after` … (`dragoman emulator --list-faults`)."""
        return self._step(fault={fault: argument})

    def problems(self) -> list[str]:
        """What did not go as the script says, until now."""
        return self._player.problems()

    def check(self) -> None:
        """Raise if something did not go as the script says."""
        problems = self.problems()
        if problems:
            raise ScriptNotFollowed("\n".join(problems))

    def answer(self, question: Question) -> Answer:
        """What the server asks for each request."""
        answer = self._service.answer(question)
        route = find_route(question.verb, question.path)
        method = route.method if route is not None else ""
        self.requests.append(
            Request(
                method=METHODS.get(method, method),
                model=route.model if route is not None else "",
                path=question.path,
                status=answer.status,
                headers=question.headers,
                body=question.body,
            )
        )
        return answer

    def _step(self, **step: Any) -> Self:
        for one in load_data({"steps": [step]}, "step").script.steps:
            self._player.add_step(one)
        return self


@contextmanager
def running(
    script: Source | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    seed: str = "dragoman",
    check: bool = True,
) -> Iterator[Emulator]:
    """An emulator for as long as the block lasts; at its end a script that was not followed is an error."""
    emulator = Emulator(seed=seed)
    if script is not None:
        emulator.script(script)
    with listening(emulator.answer, host, port) as emulator.url:
        yield emulator
    if check:
        emulator.check()
