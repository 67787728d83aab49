"""The strict emulator behind a recording server: what the gateway sent to "Google", and what it got back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from dragoman.emulator.service import EmulatorService, HttpRequest
from tests.e2e.recording_server import Answered, Asked, Exchanged, Loopback, listen

SENTINEL = b"skip_thought_signature_validator"
KEY = "e2e-upstream-key-0123456789"
OVERFLOW = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
NO_JSON_SCHEMA = Answered(
    status=400,
    content_type="application/json",
    body=msgspec.json.encode(
        {
            "error": {
                "code": 400,
                "message": 'Invalid JSON payload received. Unknown name "parametersJsonSchema" at '
                "'tools[0].function_declarations[0]': Cannot find field.",
                "status": "INVALID_ARGUMENT",
            }
        }
    ),
)


class Google:
    """Reads the record of a `Loopback` whose answers come from the emulator."""

    def __init__(self, loopback: Loopback) -> None:
        self._loopback = loopback
        self._due: deque[Answered] = deque()
        self._planned: list[Answered] = []
        self.url = loopback.url

    def refuse_next(self, code: int, message: str, status: str, details: Sequence[Any] = ()) -> None:
        """The next request with tools gets this error; it counts as no refusal."""
        error = {"code": code, "message": message, "status": status, "details": list(details)}
        body = msgspec.json.encode({"error": error})
        self._due.append(Answered(status=code, content_type="application/json", body=body))

    def overflow_next(self) -> None:
        """The next request with tools is too long."""
        self.refuse_next(400, OVERFLOW, "INVALID_ARGUMENT")

    def take_refusal(self, asked: Asked) -> Answered | None:
        if not self._due or b'"functionDeclarations"' not in asked.body or "countTokens" in asked.target:
            return None
        self._planned.append(self._due.popleft())
        return self._planned[-1]

    def all_refused(self) -> bool:
        """Whether every planned refusal has happened."""
        return not self._due

    def forget(self) -> None:
        """A new record, and nothing planned."""
        self._due.clear()
        self._loopback.forget()

    def refusals(self) -> list[str]:
        """Everything that was not a 200, with the request it answers: each one is a bug of ours."""
        return [
            _show(one)
            for one in self._loopback.seen()
            if one.answered.status != 200 and one.answered not in (NO_JSON_SCHEMA, *self._planned)
        ]

    def requests(self, method: str = "GenerateContent") -> list[dict[str, Any]]:
        """The bodies sent to generateContent and streamGenerateContent, in order."""
        return [msgspec.json.decode(body) for body in self.bodies(method)]

    def bodies(self, method: str = "GenerateContent") -> list[bytes]:
        """The same as they came."""
        return [one.asked.body for one in self._loopback.seen() if method.lower() in one.asked.target.lower()]

    def methods(self) -> list[str]:
        """The upstream method of each request with tools."""
        return [
            urlsplit(one.asked.target).path.rpartition(":")[2]
            for one in self._loopback.seen()
            if b'"functionDeclarations"' in one.asked.body and "countTokens" not in one.asked.target
        ]

    def keys(self) -> set[str]:
        return {one.asked.headers.get("x-goog-api-key", "") for one in self._loopback.seen()}

    def sentinels(self) -> int:
        """How often reasoning had to be given up for lack of a signature."""
        return sum(one.asked.body.count(SENTINEL) for one in self._loopback.seen())

    def declarations(self) -> dict[str, dict[str, Any]]:
        """The functions of the last request that has any, by name."""
        for request in reversed(self.requests()):
            found = {
                function["name"]: function
                for tool in request.get("tools", ())
                for function in tool.get("functionDeclarations", ())
            }
            if found:
                return found
        return {}

    def declared(self) -> list[str]:
        return list(self.declarations())


@contextmanager
def emulated_google(*, json_schemas: bool = True) -> Iterator[Google]:
    """`json_schemas=False` is a back end that knows only the older `parameters`."""
    service = EmulatorService("dragoman")

    def answer(asked: Asked) -> Answered:
        if not json_schemas and b'"parametersJsonSchema"' in asked.body:
            return NO_JSON_SCHEMA
        if (planned := google.take_refusal(asked)) is not None:
            return planned
        parts = urlsplit(asked.target)
        question = HttpRequest(
            method=asked.verb,
            path=parts.path,
            alt=parse_qs(parts.query).get("alt", [""])[-1],
            key=asked.headers.get("x-goog-api-key", ""),
            body=asked.body,
        )
        reply = service.handle(question)
        return Answered(
            status=reply.status, content_type=reply.content_type, body=b"".join(reply.body_writes)
        )

    with listen(answer) as loopback:
        google = Google(loopback)
        yield google


def _show(one: Exchanged) -> str:
    asked, answered = one.asked, one.answered
    return f"{answered.status} for {asked.target}: {answered.body.decode()}\n{asked.body.decode()[-4000:]}"
