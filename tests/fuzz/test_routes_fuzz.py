"""Every route of the tables with spoilt bodies, paths, queries and headers: no mistake of ours, refusals in words."""

from __future__ import annotations

import json
import logging
import os
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.gateway.app import GatewayApp
from tests.faults.all_routes import METHODS, Sample, every_route
from tests.fuzz.client_seeds import seeds_of
from tests.fuzz.in_process_gateway import KEY, Answer, call, make_gateway
from tests.fuzz.mutate import mutate

ROUTES = every_route()
WITH_BODY = [sample for sample in ROUTES if sample.takes_body]
ROUNDS = int(os.environ.get("DRAGOMAN_FUZZ_ROUNDS", "250"))
_NUMBER = re.compile(rb"(?<=[:\[,])\s*-?\d+(?=[,\]}])")
_HUGE = (b"9" * 5000, b"-" + b"9" * 5000, b"1e999999", b"1e-999999", b"0." + b"3" * 5000, b"1E400", b"-0")
_HEADERS = [
    "content-type",
    "anthropic-version",
    "anthropic-beta",
    "x-amz-target",
    "x-claude-code-session-id",
    "accept",
]
_HEADERS += [
    "user-agent",
    "x-dragoman-session",
    "x-stainless-timeout",
    "amz-sdk-invocation-id",
    "tokentype",
    "expect",
]


async def ask(
    app: GatewayApp, sample: Sample, body: bytes, *, path: str = "", query: str = "", **headers: str
) -> Answer:
    known = {"host": "localhost", "x-api-key": KEY, "content-type": "application/json", **sample.headers}
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    return await call(app, sample.method, path or sample.path, query, {**known, **more}, body)


def check(answer: Answer, asked: object) -> int:
    """Served, or refused in words; never a mistake, never more than Google's own trouble."""
    assert answer.status, f"no answer\n{asked!r}"
    assert b"Dragoman made a mistake" not in answer.body, f"{answer.body!r}\n{asked!r}"
    assert answer.status < 500, f"{answer.status} {answer.body!r}\n{asked!r}"
    if answer.status >= 400 and answer.body:
        assert isinstance(json.loads(answer.body), dict | list), asked
    return answer.status


def spoil(body: bytes, chance: random.Random) -> bytes:
    """As the emulator's requests are spoilt, and with numbers no machine has."""
    spoilt = mutate(body, chance)
    numbers = list(_NUMBER.finditer(spoilt)) if chance.random() < 0.2 else []
    if numbers:
        start, end = chance.choice(numbers).span()
        spoilt = spoilt[:start] + chance.choice(_HUGE) + spoilt[end:]
    return spoilt


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("sample", WITH_BODY, ids=lambda sample: sample.name)
async def test_a_seed_is_a_good_request(sample: Sample) -> None:
    """Spoilt nonsense would prove nothing."""
    app = make_gateway()
    statuses = Counter([(await ask(app, sample, seed)).status for seed in _seeds(sample)])
    if sample.route.handler.__name__ not in (
        "nothing",
        "add_items",
        "update_conversation",
        "cancel_response",
        "post_results",  # of calls that nobody made here
        "post_replay",  # of a request that nobody captured here
    ):
        assert statuses[200] >= max(1, statuses.total() // 3), statuses


def _seeds(sample: Sample) -> list[bytes]:
    return seeds_of(sample.route.dialect.name, sample.path)


@pytest.mark.parametrize("sample", WITH_BODY, ids=lambda sample: sample.name)
@pytest.mark.timeout(300)
async def test_spoilt_bodies_surprise_no_route(sample: Sample) -> None:
    app = make_gateway()
    seeds = _seeds(sample)
    for number in range(ROUNDS):
        chance = random.Random(f"{sample.name} {number}")
        body = spoil(chance.choice(seeds), chance)
        check(await ask(app, sample, body), (sample.name, body))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_SEGMENTS = st.lists(
    st.sampled_from(
        [
            "v1",
            "v1beta",
            "models",
            "messages",
            "responses",
            "conversations",
            "items",
            "key",
            KEY,
            "..",
            ".",
            "",
        ]
    )
    | st.sampled_from(
        ["gemini-x:generateContent", ":", "model", "converse", "sessions", "tools", "%2f", "%00", "*"]
    )
    | _TEXT,
    max_size=6,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sample=st.sampled_from(ROUTES),
    segments=_SEGMENTS,
    method=st.sampled_from(METHODS),
    query=_TEXT,
    headers=st.dictionaries(st.sampled_from(_HEADERS), _TEXT, max_size=3),
    body=st.sampled_from([b"", b"{}", b"[]", b'{"model": 1}']),
    below=st.booleans(),
)
async def test_any_path_any_query_any_header(
    sample: Sample,
    segments: list[str],
    method: str,
    query: str,
    headers: dict[str, str],
    body: bytes,
    below: bool,
) -> None:
    path = (sample.path if below else "") + "/" + "/".join(segments)
    strange = Sample(method, path, sample.route, sample.headers)
    asked = (method, path, query, headers, body)
    check(await ask(make_gateway(), strange, body, query=query, **headers), asked)


_LEAVES: Any = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(sample=st.sampled_from(WITH_BODY), document=_JSON, name=st.integers(0, 10**6), value=_JSON)
async def test_any_json_at_all_and_in_any_field(sample: Sample, document: Any, name: int, value: Any) -> None:
    app = make_gateway()
    check(await ask(app, sample, json.dumps(document).encode()), (sample.name, document))
    seeds = [body for body in map(_object, _seeds(sample)) if body]
    if seeds:
        body = seeds[name % len(seeds)]
        field = sorted(body)[name % len(body)]
        check(
            await ask(app, sample, json.dumps({**body, field: value}).encode()), (sample.name, field, value)
        )


def _object(body: bytes) -> dict[str, Any]:
    document = json.loads(body)
    return document if isinstance(document, dict) else {}
