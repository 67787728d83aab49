"""Heads of answers: a form per status and names gives the bytes that writing line by line would give."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.server.wire import answers
from dragoman.server.wire.answers import Framing, open_answer

NAMES = (
    "content-type",
    "x-a",
    "x-%s",
    "x-dragoman-model",
    "connection",
    "content-length",
    "transfer-encoding",
)
VALUES = st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=12)
FIELDS = st.lists(
    st.tuples(st.just("content-length"), st.integers(0, 9_999).map(str))
    | st.tuples(st.just("connection"), st.sampled_from(["close", "Close", "keep-alive"]))
    | st.tuples(
        st.sampled_from([name for name in NAMES if name not in ("connection", "content-length")]), VALUES
    )
    | st.tuples(st.just("date"), st.just("today")),
    max_size=8,
)


def line_by_line(
    status: int,
    fields: list[tuple[str, str]],
    *,
    method: str,
    modern: bool,
    keeps_alive: bool,
    length: int | None,
) -> tuple[list[str], str, bool]:
    lines = []
    for name, value in fields:
        if name == "content-length":
            length = int(value)
        elif name == "connection":
            keeps_alive = keeps_alive and value.lower() != "close"
        elif name != "transfer-encoding":
            lines.append(f"{name}: {value}")
    if method == "HEAD" or status in (204, 304):
        framing = Framing.NONE
    elif length is not None:
        framing = Framing.LENGTH
    else:
        framing = Framing.CHUNKS if modern else Framing.CLOSE
    if length is not None and status not in (204, 304):
        lines.append(f"content-length: {length}")
    elif framing == Framing.CHUNKS:
        lines.append("transfer-encoding: chunked")
    keeps_alive = keeps_alive and framing != Framing.CLOSE
    if keeps_alive != modern:
        lines.append("connection: keep-alive" if keeps_alive else "connection: close")
    return lines, framing, keeps_alive


@given(
    st.sampled_from([200, 204, 304, 404, 500]),
    FIELDS,
    st.sampled_from(["GET", "HEAD", "POST"]),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 99),
)
def test_a_form_says_what_line_by_line_would_say(
    status: int,
    fields: list[tuple[str, str]],
    method: str,
    modern: bool,
    keeps_alive: bool,
    length: int | None,
) -> None:
    given_ = {"method": method, "modern": modern, "keeps_alive": keeps_alive, "length": length}
    expected, framing, stays = line_by_line(status, fields, **given_)  # type: ignore[arg-type]
    for _ in range(2):  # learnt, then known
        opening = open_answer(status, fields, **given_)  # type: ignore[arg-type]
        said = opening.head.decode("latin-1").split("\r\n")
        assert said[0].startswith(f"HTTP/1.1 {status} ")
        assert said[-2:] == ["", ""]
        dates = [] if any(name == "date" for name, _ in fields) else [said.pop(-3)]
        assert said[1:-2] == expected
        assert all(parsedate_to_datetime(date.removeprefix("date: ")) for date in dates)
        assert (opening.framing, opening.keeps_alive) == (framing, stays)


@pytest.mark.parametrize("broken", ["a\r\nb: c", "a\nb", "a\r", "\n"])
def test_q_a_line_break_is_refused_also_where_the_form_is_known(broken: str) -> None:
    def say(*fields: tuple[str, str]) -> None:
        open_answer(200, [*fields], method="GET", modern=True, keeps_alive=True, length=0)

    say(("x-one", "1"), ("x-two", "2"))
    for fields in (
        (("x-one", broken), ("x-two", "2")),
        (("x-one", "1"), ("x-two", broken)),
        ((broken, "1"), ("x-two", "2")),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match="line break"):
                say(*fields)


def test_a_per_cent_sign_is_only_a_sign() -> None:
    fields = [("x-%s", "%s%d"), ("x-%(a)s", "%%")]
    opening = open_answer(200, fields, method="GET", modern=True, keeps_alive=True, length=0)
    assert b"\r\nx-%s: %s%d\r\nx-%(a)s: %%\r\ncontent-length: 0\r\n" in opening.head


def test_forms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_FORMS", {})
    for number in range(answers._MOST_FORMS * 2 + 10):
        fields = [(f"x-{number}", "1")]
        opening = open_answer(200, fields, method="GET", modern=True, keeps_alive=True, length=0)
        assert b"\r\nx-%d: 1\r\n" % number in opening.head
        assert len(answers._FORMS) <= answers._MOST_FORMS
