"""Short ways to play a script to requests."""

from __future__ import annotations

from typing import Any

from dragoman.emulator.script.load import load_text
from dragoman.emulator.script.play import Player
from dragoman.emulator.service import Service
from dragoman.emulator.wire import Answer
from tests.unit.emulator.asking import Json, declare, send, talk, user

WEATHER = declare("get_weather")


class Stage:
    """A player with its service."""

    def __init__(self, script: str) -> None:
        self.player = Player(load_text(script))
        self.service = Service("test", self.player)

    def send(self, body: Any, **options: Any) -> Answer:
        return send(body, service=self.service, **options)

    def stream(self, body: Any, **options: Any) -> Answer:
        return self.send(body, method="streamGenerateContent", alt="sse", **options)


def asking(words: str, **rest: Any) -> Json:
    return talk(user(words), **rest)
