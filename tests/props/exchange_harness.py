"""One request and its answer through an `Exchange`: what Google may say, and what a client then gets."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from dragoman.dialects.base import ClientDialect, Target
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.anthropic.strategies import WORDS

Json = dict[str, Any]

PARTS = st.one_of(
    WORDS.map(lambda words: {"text": words}),
    WORDS.map(lambda words: {"text": words, "thought": True}),
    st.builds(
        lambda words, sign: {"text": words, "thoughtSignature": sign}, WORDS, st.sampled_from(["YQ", "Yg"])
    ),
    st.just({"text": "", "thought": True, "thoughtSignature": "Yw"}),
    st.builds(
        lambda name, args: {"functionCall": {"name": name, "args": args}},
        st.sampled_from(["Read", "Bash", "unknown"]),
        st.dictionaries(WORDS, WORDS, max_size=2),
    ),
    st.just({"functionCall": {"name": "Read", "id": "g7"}, "thoughtSignature": "ZA"}),
    st.just({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
)
USAGE = st.fixed_dictionaries(
    {},
    optional={
        "promptTokenCount": st.integers(0, 99),
        "cachedContentTokenCount": st.integers(0, 99),
        "candidatesTokenCount": st.integers(0, 99),
        "thoughtsTokenCount": st.integers(0, 99),
    },
)
CHUNKS = st.lists(
    st.builds(
        lambda parts, usage: {
            "candidates": [{"content": {"parts": parts, "role": "model"}}],
            "usageMetadata": usage,
        },
        st.lists(PARTS, max_size=3),
        USAGE,
    ),
    max_size=5,
)
ENDS = st.sampled_from(
    [
        {"candidates": [{"finishReason": "STOP"}]},
        {
            "candidates": [
                {"content": {"parts": [{"text": "", "thoughtSignature": "ZQ"}]}, "finishReason": "STOP"}
            ]
        },
        {
            "candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": {"promptTokenCount": 5},
        },
        {"candidates": [{"finishReason": "SAFETY", "finishMessage": "no"}]},
        {"promptFeedback": {"blockReason": "SAFETY"}},
    ]
)
BREAKS = st.sampled_from([[], [{"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}}]])
#: Good or bad.
ANY_END = st.one_of(ENDS.map(lambda end: [end]), BREAKS)


def sse(chunks: list[Json]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def exchange(
    client: ClientDialect, request: Json, model: str, *, stream: bool = False
) -> tuple[Exchange, bytes]:
    """A request understood, and what it is for Google."""
    # A stream takes its own id first, a whole answer last: this way their calls have the same ids.
    tokens = iter(range(-1 if stream else 0, 10**6))
    begun = Exchange(client, new_id=lambda: f"{next(tokens):016d}", created_s=1)
    begun.decode(json.dumps(request).encode())
    return begun, begun.encode(Target(model=model))


def client_bytes(
    client: ClientDialect, request: Json, pieces: list[bytes], *, stream: bool
) -> tuple[bytes, Any]:
    """What the client gets when Google says these, and what the gateway makes of it for itself."""
    begun, _ = exchange(client, request, "gemini-3.8-flash", stream=stream)
    out = begun.open() + b"".join(map(begun.receive, pieces)) + begun.finish()
    return out, (begun.store_entries, begun.summary, begun.notes)
