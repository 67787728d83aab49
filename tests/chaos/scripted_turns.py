"""What Google says in a conversation of two turns, in pieces between the moments at which a fault may strike.

before headers   the request has arrived, nothing was said
before content   a status and a chunk without a word
mid text         the first words
mid call         all words, one whole call, the beginning of a second one
at the end       everything but the finish reason
between turns    the first turn is over, the second one has just arrived
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from tests.faults.harness import chunk

Json = dict[str, Any]
Said = tuple[str, list[tuple[str, Json]]]
Phase = Literal["before headers", "before content", "mid text", "mid call", "at the end", "between turns"]

PHASES: tuple[Phase, ...] = get_args(Phase)
#: Behind these a client that streams has seen something, and nothing can be taken back.
SAID: frozenset[Phase] = frozenset({"mid text", "mid call", "at the end"})

TOOL = "look"
WORDS = ("One ", "two.")
CALLS: list[tuple[str, Json]] = [(TOOL, {"n": 1}), (TOOL, {"n": 2})]
IDS = ("g1", "g2")
SIGNATURE = "EjQKMgEMOdbHO0Gd+c9Mxk4ELwPGbpCEcp2mFfYYLix2UVtBH3fL8GECc4+JITVnHF4qZDsA"
LAST_WORDS = "Both are there."

_FIRST: Json = {
    "functionCall": {"name": TOOL, "args": CALLS[0][1], "id": IDS[0]},
    "thoughtSignature": SIGNATURE,
}
_SECOND: Json = {"functionCall": {"name": TOOL, "args": CALLS[1][1], "id": IDS[1]}}
_BEGUN = {"functionCall": {"name": TOOL, "id": IDS[1], "willContinue": True}}
_MORE = {
    "functionCall": {
        "partialArgs": [{"jsonPath": "$.n", "numberValue": CALLS[1][1]["n"]}],
        "willContinue": True,
    }
}
_OVER: Json = {"functionCall": {}}
_FINISH = chunk({"text": ""}, finish="STOP")

#: What follows each moment of the first turn, up to the next one.
STREAMED: dict[Phase, tuple[bytes, ...]] = {
    "before headers": (chunk({"text": ""}),),
    "before content": (chunk({"text": WORDS[0]}),),
    "mid text": (chunk({"text": WORDS[1]}), chunk(_FIRST), chunk(_BEGUN)),
    "mid call": (chunk(_MORE), chunk(_OVER)),
    "at the end": (_FINISH,),
}
LAST_STREAMED = (chunk({"text": LAST_WORDS[:5]}), chunk({"text": LAST_WORDS[5:]}), _FINISH)


def _bare(sse: bytes) -> bytes:
    return json.dumps(json.loads(sse.removeprefix(b"data: ")), indent=1).encode()


def _slices(body: bytes) -> dict[Phase, tuple[bytes, ...]]:
    """The same moments in a body that is one document: inside its words, inside its second call, in front of its end."""
    text = body.index(b"two.")
    call = body.rindex(b'"args"') + 4
    end = len(body) - 2
    cuts = (0, 0, text, call, end, len(body))
    return {
        phase: (body[start:stop],) if start < stop else ()
        for phase, start, stop in zip(PHASES, cuts, cuts[1:], strict=False)
    }


WHOLE = _slices(_bare(chunk({"text": "".join(WORDS)}, _FIRST, _SECOND, finish="STOP")))
LAST_WHOLE = _bare(chunk({"text": LAST_WORDS}, finish="STOP"))


def said_before(phase: Phase) -> Said:
    """Text and calls that were told whole when that moment comes."""
    words = {"mid text": WORDS[:1], "mid call": WORDS, "at the end": WORDS}.get(phase, ())
    calls = {"mid call": CALLS[:1], "at the end": CALLS}.get(phase, [])
    return "".join(words), calls


def is_second_turn(body: Json) -> bool:
    return any("functionResponse" in part for content in body["contents"] for part in content["parts"])
