from __future__ import annotations

import pytest

from dragoman.http.aws_eventstream import encode_message
from dragoman.observe.compare import compare, compare_answers, compare_bodies
from tests.unit.gateway.dashboard.builders import captured, record


def test_bodies_are_the_same_or_differ_in_spaces_or_in_what_they_say() -> None:
    assert compare_bodies(b'{"a":1}', b'{"a":1}').verdict == "same"
    assert compare_bodies(b'{"a":1}', b'{ "a": 1 }').verdict == "spaces"
    different = compare_bodies(b'{"a":1}', b'{"a":2}')
    assert different.verdict == "different"
    assert [line for line in different.lines if line[0] in "+-"] == ['-  "a": 1', '+  "a": 2']


def test_facts_then_and_now() -> None:
    then = captured({}, ({"q": 1}, {}), given={"r": 1}, stop="STOP", calls=("x",))
    found = compare(
        then, record(model="other", calls=("x", "y")), upstream_request=b'{"q":1}', client_answer=b'{"r":2}'
    )
    facts = {fact.name: (fact.then, fact.now) for fact in found.facts}
    assert found.asked.verdict == "same"
    assert found.given.verdict == "different"
    assert facts["model"] == ("gemini-2.5-flash", "other")
    assert facts["calls"] == ("x", "x, y")
    assert facts["stop"] == ("STOP", "")
    assert facts["status"] == ("200", "200")


THEN, NOW = "bttohxvgjj5skafz", "dg77oukperymc2gb"


@pytest.mark.parametrize(
    "answer",
    [
        'data: {"message":{"id":"msg_%s"}}\n\ndata: {"id":"toolu_%s"}\n\n',
        '{"id":"resp_%s","output":[{"id":"fc_%s_0"}],"created_at":17949621%d}',
        '{"id":"chatcmpl-%s","created": 17949621%d,"x":"call_%s-b44zsbhh"}',
        '{"metrics":{"latencyMs":%d}}',
    ],
)
def test_an_answer_that_has_only_new_ids_and_times_is_no_other_answer(answer: str) -> None:
    def said(token: str, number: int) -> bytes:
        return answer.replace("%s", token).replace("%d", str(number)).encode()

    found = compare_answers(said(THEN, 82), said(NOW, 95))
    assert (found.verdict, found.lines) == ("ids", [])
    assert compare_bodies(said(THEN, 82), said(NOW, 95)).verdict == "different", (
        "of what Google is asked all counts"
    )


def test_ids_that_are_mixed_up_are_a_difference() -> None:
    then = b'[{"id":"toolu_%b"},{"id":"toolu_%b"}]' % (THEN.encode(), THEN.encode())
    now = b'[{"id":"toolu_%b"},{"id":"toolu_%b"}]' % (THEN.encode(), NOW.encode())
    assert compare_answers(then, now).verdict == "different"


def test_only_what_was_said_differently_is_shown() -> None:
    then = b'{"id":"msg_%b","text":"yes"}' % THEN.encode()
    now = b'{"id":"msg_%b","text":"no"}' % NOW.encode()
    told = compare_answers(then, now)
    assert told.verdict == "different"
    assert [line for line in told.lines if line[0] in "+-"] == ['-  "text": "yes"', '+  "text": "no"']


def test_frames_of_amazons_are_compared_by_what_they_say() -> None:
    def frame(said: str, token: str) -> bytes:
        return encode_message(
            {":event-type": "chunk"}, b'{"said":"%b","id":"utt_%b"}' % (said.encode(), token.encode())
        )

    assert compare_answers(frame("yes", THEN), frame("yes", NOW)).verdict == "ids"
    told = compare_answers(frame("yes", THEN), frame("no", NOW))
    assert any("yes" in line for line in told.lines)
    assert not any("\ufffd" in line for line in told.lines)
