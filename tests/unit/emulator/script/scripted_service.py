"""Short ways to play a script to requests."""

from __future__ import annotations

from typing import Any

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.script.load import load_text
from dragoman.emulator.script.player import ScriptPlayer
from dragoman.emulator.service import EmulatorService
from tests.unit.emulator.builders import Json, declare, send, talk, user

WEATHER = declare("get_weather")


class ScriptedService:
    """A player with its service."""

    def __init__(self, script: str) -> None:
        self.player = ScriptPlayer(load_text(script))
        self.service = EmulatorService("test", self.player)

    def send(self, body: Any, **options: Any) -> HttpResponse:
        return send(body, service=self.service, **options)

    def stream(self, body: Any, **options: Any) -> HttpResponse:
        return self.send(body, method="streamGenerateContent", alt="sse", **options)


def user_request(words: str, **rest: Any) -> Json:
    return talk(user(words), **rest)
