"""Compare a captured request with its replay: the upstream request, the client's answer and the record."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from dragoman.observe.captures import CapturedRequest
from dragoman.observe.explain import diff_bodies, unframe
from dragoman.observe.record import RequestRecord

Verdict = Literal["same", "spaces", "ids", "different"]
#: Text for each verdict.
VERDICT_TEXTS: dict[Verdict, str] = {
    "same": "the same, byte for byte",
    "spaces": "the same but for white space",
    "ids": "the same but for ids and times",
    "different": "different",
}
#: Ids that the gateway generates for every answer, and the timestamps in it.
_ID = re.compile(rb'"([a-z]{2,9}[_-])([a-z2-7]{16}(?:-[a-z2-7]{8})?)((?:_\d+)?")')
_TIME = re.compile(rb'("(?:created|created_at|latencyMs)":\s*)\d+')


class BodyComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two bodies; `lines` is a unified diff without its two header lines."""

    verdict: Verdict
    lines: list[str]


class FieldComparison(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    then: str
    now: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    asked: BodyComparison
    given: BodyComparison
    facts: tuple[FieldComparison, ...]


def compare(captured: CapturedRequest, record: RequestRecord, *, asked: bytes, given: bytes) -> Comparison:
    """Compare a capture with its replay.

    `asked` is the first upstream request of the replay, `given` the answer to the client.
    """
    then = captured.upstream[0].request.data if captured.upstream else b""
    return Comparison(
        asked=compare_bodies(then, asked),
        given=compare_answers(captured.client_answer.data, given),
        facts=compare_records(captured.record, record),
    )


def compare_bodies(then: bytes, now: bytes) -> BodyComparison:
    if then == now:
        return BodyComparison(verdict="same", lines=[])
    lines = diff_bodies(then, now)[2:]
    return BodyComparison(verdict="different" if lines else "spaces", lines=lines)


def compare_answers(then: bytes, now: bytes) -> BodyComparison:
    """Compare two answers to a client; ids may differ if equal ids are at the same places."""
    if then == now:
        return BodyComparison(verdict="same", lines=[])
    found = compare_bodies(_with_stable_ids(unframe(then)), _with_stable_ids(unframe(now)))
    return BodyComparison(verdict="ids", lines=[]) if found.verdict == "same" else found


def _with_stable_ids(body: bytes) -> bytes:
    """Replace ids by their order of appearance, and times by 0."""
    known: dict[bytes, int] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return b'"%b%d%b' % (found[1], known.setdefault(found[2], len(known) + 1), found[3])

    return _TIME.sub(rb"\g<1>0", _ID.sub(number, body))


def compare_records(then: RequestRecord, now: RequestRecord) -> tuple[FieldComparison, ...]:
    facts = {
        "model": (then.model, now.model),
        "status": (str(then.status), str(now.status)),
        "error": (then.error, now.error),
        "stop": (then.stop, now.stop),
        "calls": (", ".join(then.calls), ", ".join(now.calls)),
        "notes": (str(len(then.notes)), str(len(now.notes))),
        "tokens out": (str(then.usage.output_tokens), str(now.usage.output_tokens)),
    }
    return tuple(FieldComparison(name=name, then=old, now=new) for name, (old, new) in facts.items())
