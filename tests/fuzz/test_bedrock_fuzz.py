"""Spoilt requests of Bedrock's clients: a typed error with its place, or a request Google can be asked; nothing else."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient, CountClient, InvokeClient
from dragoman.errors import DragomanError
from dragoman.translation.exchange import Exchange
from tests.fuzz.mutate import mutate

GOLDEN = Path(__file__).parents[1] / "golden" / "bedrock"
CASES = [json.loads(path.read_text("utf-8")) for path in sorted(GOLDEN.glob("*.json"))]
ANTHROPIC = CLIENTS["anthropic"]
COUNTED = [
    {"input": {"converse": case["ask"]}}
    if case["api"] == "converse"
    else {"input": {"invokeModel": {"body": base64.b64encode(json.dumps(case["ask"]).encode()).decode()}}}
    for case in CASES
]
SEEDS: list[tuple[ClientDialect, bytes]] = [
    *(
        (
            ConverseClient("m") if case["api"] == "converse" else InvokeClient(ANTHROPIC, "m", stream=True),
            json.dumps(case["ask"]).encode(),
        )
        for case in CASES
    ),
    *((CountClient(ANTHROPIC, "m"), json.dumps(body).encode()) for body in COUNTED),
]
ROUNDS = 400


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_no_spoilt_request_surprises_us(seed: int) -> None:
    dialect, body = SEEDS[seed]
    for number in range(ROUNDS):
        spoilt = mutate(body, random.Random(f"{seed}-{number}"))
        exchange = Exchange(dialect, new_id=lambda: "0" * 16)
        try:
            exchange.decode(spoilt)
            sent = exchange.encode(Target(model="gemini-3.8-flash"))
        except DragomanError as error:
            reply = dialect.encode_error(error)
            assert reply.status == 400, spoilt
            assert json.loads(reply.body)["message"]
        else:
            json.loads(sent)
