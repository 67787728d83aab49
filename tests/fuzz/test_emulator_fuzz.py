"""Mutated requests: the emulator answers or refuses in Google's shape, and never breaks."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.emulator.service import EmulatorService, HttpRequest
from tests.fuzz.emulator_seeds import QUESTIONS, with_body
from tests.fuzz.gemini_responses import check_answer
from tests.fuzz.mutate import NAMES, mutate

_SHARDS = 20
_CASES = 1000

_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def check(service: EmulatorService, question: HttpRequest) -> int:
    """The status of a Google-shaped answer; anything else fails with what is needed to ask again."""
    method = question.path.rpartition(":")[2]
    try:
        answer = service.handle(question)
        check_answer(answer, method, question.alt)
    except Exception as problem:
        raise AssertionError(
            f"{type(problem).__name__}: {problem}\nService('fuzz').answer({question!r})"
        ) from problem
    return answer.status


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.path)
def test_a_seed_is_a_good_request(question: HttpRequest) -> None:
    """Mutations of nonsense would prove nothing."""
    assert check(EmulatorService("fuzz"), question) == 200


@pytest.mark.parametrize("shard", range(_SHARDS))
def test_mutated_requests_are_answered_in_googles_shape(shard: int) -> None:
    service = EmulatorService("fuzz")
    statuses: Counter[int] = Counter()
    for number in range(_CASES):
        chance = random.Random(f"{shard}.{number}")
        question = chance.choice(QUESTIONS)
        statuses[check(service, with_body(question, mutate(question.body, chance)))] += 1
    # Neither the rules nor the model may go unvisited.
    assert statuses[200] > _CASES // 20
    assert statuses[400] > _CASES // 4


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(question=st.sampled_from(QUESTIONS), document=_JSON)
def test_any_json_at_all(question: HttpRequest, document: Any) -> None:
    check(EmulatorService("fuzz"), with_body(question, json.dumps(document).encode()))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(question=st.sampled_from(QUESTIONS), name=st.sampled_from(NAMES), value=_JSON)
def test_any_json_in_any_field(question: HttpRequest, name: str, value: Any) -> None:
    body = {**json.loads(question.body), name: value}
    check(EmulatorService("fuzz"), with_body(question, json.dumps(body).encode()))
