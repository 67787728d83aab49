"""A client of the emulator's resources with a clock of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dragoman.emulator.http_messages import HttpRequest, HttpResponse
from dragoman.emulator.service import EmulatorService

Json = dict[str, Any]

START = datetime(2026, 11, 15, 12, tzinfo=UTC)
PROJECT = "/v1/projects/p/locations/global"


class ResourceClient:
    """Asks a service of its own; time passes only when told to."""

    def __init__(self) -> None:
        self.service = EmulatorService("desk")
        self.now = START

    def advance_clock(self, **span: float) -> None:
        self.now += timedelta(**span)

    def ask(
        self, verb: str, url: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> HttpResponse:
        """`url` may have a query; a body that is not bytes is sent as JSON."""
        split = urlsplit(url)
        query = dict(parse_qsl(split.query))
        return self.service.handle(
            HttpRequest(
                method=verb,
                path=split.path,
                alt=query.get("alt", ""),
                key=query.get("key", ""),
                body=body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode(),
                headers={"host": "127.0.0.1:8378", **(headers or {})},
                query=query,
                now=self.now.isoformat().replace("+00:00", "Z"),
            )
        )

    def good(self, verb: str, url: str, body: Any = None, headers: dict[str, str] | None = None) -> Json:
        answer = self.ask(verb, url, body, headers)
        assert answer.status == 200, answer.body.decode()
        decoded: Json = json.loads(answer.body)
        return decoded

    def bad(self, verb: str, url: str, body: Any = None) -> tuple[int, str, str]:
        """The code, the status word and the message of a refusal."""
        answer = self.ask(verb, url, body)
        error = json.loads(answer.body)["error"]
        assert error["code"] == answer.status
        return error["code"], error["status"], error["message"]


def user(*parts: Json | str) -> Json:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def header(answer: HttpResponse, name: str) -> str:
    return dict(answer.headers).get(name, "")
