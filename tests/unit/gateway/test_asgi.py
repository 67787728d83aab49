"""Heads of requests, as handlers see them."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from dragoman.errors import InvalidRequest
from dragoman.gateway.asgi import check_head, query_fields


@pytest.mark.parametrize(
    "raw", [b"beta=true", b"alt=sse", b"alt=sse&key=a%20b", b"beta", b"a=1&a=2", b"\xff=\xe4"]
)
def test_a_query_is_read_the_same_whether_it_is_usual_or_not(raw: bytes) -> None:
    assert query_fields({"query_string": raw}) == dict(
        parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    )


def test_no_query_says_nothing() -> None:
    assert query_fields({}) == query_fields({"query_string": b""}) == {}


@pytest.mark.parametrize("separator", [b"&", b"&a=", b"=&"])
def test_a_query_of_too_many_fields_is_refused_and_not_read(separator: bytes) -> None:
    most = {"query_string": separator.join([b"x"] * 100), "headers": []}
    check_head(most, {})
    assert query_fields(most)
    more = {"query_string": separator.join([b"x"] * 101), "headers": []}
    assert query_fields(more) == {}
    with pytest.raises(InvalidRequest, match="more than 100 fields"):
        check_head(more, {})
