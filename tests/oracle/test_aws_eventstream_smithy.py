"""smithy's JavaScript codec, which aws-sdk-js, the Q language server and Kiro use: it writes what we write, and
reads it."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.http.aws_eventstream import EventMessage, EventStreamDecoder, encode_message
from tests.e2e.clients import INSTALL_S, RUN_S, install

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

VERSION = "4.5.2"
PROGRAM = Path(__file__).with_name("smithy_frames.mjs")
_LETTERS = "abcXYZ :-./_09äß€語😀\n\t\u0000\u2028"


def some_messages() -> list[EventMessage]:
    """Of every size that matters, and many of no importance."""
    longest = {"n" * 255: "v" * 32767, ":event-type": "€" * 10922}
    messages = [EventMessage({}, b""), EventMessage(longest, b""), EventMessage({":a": "b"}, b"x" * 200_000)]
    chance = random.Random(6)
    for _ in range(200):
        headers = {
            f":{number}-{_word(chance, 12)}": _word(chance, 40) for number in range(chance.randrange(6))
        }
        messages.append(EventMessage(headers, chance.randbytes(chance.choice((0, 1, 17, 300)))))
    return messages


def _word(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(_LETTERS, k=chance.randrange(length)))


MESSAGES = some_messages()
FRAMES = [encode_message(message.headers, message.payload) for message in MESSAGES]
ONE = encode_message({":event-type": "x"}, b"{}")


@pytest.fixture(scope="module")
def smithy() -> dict[str, Any]:
    """What the codec made of everything these tests ask."""
    whole = b"".join(FRAMES)
    streams = [[frame] for frame in FRAMES]
    streams.append([whole[start : start + 997] for start in range(0, len(whole), 997)])
    streams.append([ONE[place : place + 1] for place in range(len(ONE))] * 3)
    streams += [[ONE + ONE[:-1]], [ONE + ONE[:-1] + b"\x00"]]
    asked = {
        "messages": [
            {"headers": list(message.headers.items()), "payload": message.payload.hex()}
            for message in MESSAGES
        ],
        "streams": [[piece.hex() for piece in pieces] for pieces in streams],
    }
    folder = install(f"eventstream-codec-{VERSION}", f"@smithy/eventstream-codec@{VERSION}")
    done = subprocess.run(
        ["node", str(PROGRAM), str(folder)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def seen(messages: list[EventMessage]) -> list[dict[str, Any]]:
    return [
        {
            "headers": [[name, "string", value] for name, value in message.headers.items()],
            "payload": message.payload.hex(),
        }
        for message in messages
    ]


def test_its_bytes_are_our_bytes(smithy: dict[str, Any]) -> None:
    assert [bytes.fromhex(encoded) for encoded in smithy["encoded"]] == FRAMES


def test_we_read_what_it_writes(smithy: dict[str, Any]) -> None:
    decoder = EventStreamDecoder()
    assert decoder.feed(b"".join(map(bytes.fromhex, smithy["encoded"]))) == MESSAGES
    decoder.close()


def test_it_reads_each_of_our_messages(smithy: dict[str, Any]) -> None:
    for message, decoded in zip(MESSAGES, smithy["decoded"], strict=False):
        assert decoded == {"messages": seen([message]), "error": ""}


def test_it_reads_our_stream_in_pieces_of_any_size(smithy: dict[str, Any]) -> None:
    large, bytewise = smithy["decoded"][len(MESSAGES) : len(MESSAGES) + 2]
    assert large == {"messages": seen(MESSAGES), "error": ""}
    assert bytewise == {"messages": seen([EventMessage({":event-type": "x"}, b"{}")] * 3), "error": ""}


def test_it_notices_what_we_notice(smithy: dict[str, Any]) -> None:
    cut, spoilt = smithy["decoded"][-2:]
    assert "Truncated" in cut["error"]
    assert "checksum" in spoilt["error"]
