"""What a tool returns, as a result every API can carry."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.ir import Media, Text, ToolCall
from dragoman.tools import ToolOutput, result_text
from dragoman.tools.results import (
    MAX_MEDIA_BYTES,
    canonical,
    cap_output,
    error_output,
    size_of,
    to_output,
    to_result,
)
from tests.unit.tools.core import sample_tools

PICTURE = Media(mime="image/png", data="aGk=")


@pytest.mark.parametrize(
    ("value", "response", "text"),
    [
        ({"a": 1}, b'{"a":1}', '{"a":1}'),
        ([1, 2], b'{"output":[1,2]}', "[1,2]"),
        ((), b'{"output":[]}', "[]"),
        (5, b'{"output":5}', "5"),
        (1.5, b'{"output":1.5}', "1.5"),
        (True, b'{"output":true}', "true"),
        (float("nan"), b'{"output":null}', "null"),
        (sample_tools.Point(1, 2), b'{"x":1,"y":2}', '{"x":1,"y":2}'),
        (sample_tools.Query(text="q"), b'{"text":"q","limit":10}', '{"text":"q","limit":10}'),
        (sample_tools.Person(name="A", age=1), b'{"name":"A","age":1}', '{"name":"A","age":1}'),
        ([sample_tools.Cat(meow="m")], b'{"output":[{"meow":"m"}]}', '[{"meow":"m"}]'),
        (Path("/srv/a"), b'{"output":"/srv/a"}', "/srv/a"),
        (sample_tools.Colour.RED, b'{"output":"red"}', "red"),
        (datetime.date(2026, 11, 16), b'{"output":"2026-11-16"}', "2026-11-16"),
        ({"output": "x"}, b'{"output":"x"}', "x"),
        (
            {1: {"a": "\ud800"}, "b": ["\udfff", 2]},
            b'{"1":{"a":"?"},"b":["?",2]}',
            '{"1":{"a":"?"},"b":["?",2]}',
        ),
    ],
)
def test_values_become_json_objects_and_read_as_themselves(value: Any, response: bytes, text: str) -> None:
    output = to_output(value)
    assert (output.response, output.content, output.is_error) == (response, (), False)
    assert result_text(output) == text


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("words", (Text(text="words"),)),
        ('{"not": "parsed"}', (Text(text='{"not": "parsed"}'),)),
        ("half \ud83d", (Text(text="half ?"),)),
        (None, ()),
        (PICTURE, (PICTURE,)),
        ([Text(text="a"), PICTURE], (Text(text="a"), PICTURE)),
        ((PICTURE,), (PICTURE,)),
    ],
)
def test_text_and_files_stay_what_they_are(value: Any, content: tuple[Text | Media, ...]) -> None:
    assert to_output(value) == ToolOutput(content=content)


def test_a_result_can_be_said_exactly() -> None:
    output = ToolOutput(content=(PICTURE,), response=b'{"a":1}', is_error=True)
    assert to_output(output) is output
    result = to_result(output, ToolCall(id="c", name="n"))
    assert (result.call_id, result.name, result.response, result.is_error) == ("c", "n", b'{"a":1}', True)
    both = ToolOutput(content=(Text(text="seen:"), Text(text="all")), response=b'{"a":1}')
    assert result_text(both) == 'seen:\nall\n{"a":1}'
    assert result_text(ToolOutput()) == ""


def test_what_fits_is_not_touched() -> None:
    for output in (ToolOutput(content=(Text(text="é" * 5),)), ToolOutput(response=b'{"a":1234}')):
        assert cap_output(output, 10) == output
        assert cap_output(output, 9) != output


def test_the_cap_counts_bytes_and_cuts_between_characters() -> None:
    cut = cap_output(ToolOutput(content=(Text(text="a€€"), PICTURE), is_error=True), 6)
    note = "\n[output cut: the first 4 of 7 bytes are shown; ask for less at once]"
    assert cut == ToolOutput(content=(Text(text="a€" + note), PICTURE), is_error=True)


def test_several_texts_are_capped_together() -> None:
    cut = cap_output(ToolOutput(content=(Text(text="aaa"), Text(text="bbb"))), 5)
    assert result_text(cut).startswith("aaa\nb\n[output cut: the first 5 of 7 bytes")


def test_files_that_no_request_could_carry_are_left_out() -> None:
    large = Media(mime="video/mp4", data="x" * (MAX_MEDIA_BYTES - 3))
    kept = cap_output(ToolOutput(content=(PICTURE, large)), 1000)
    assert kept.content[0] == PICTURE
    assert "a file of" in result_text(kept)
    assert cap_output(ToolOutput(content=(large,)), 1000).content == (large,)


def test_sizes_are_those_of_the_wire() -> None:
    assert size_of(ToolOutput(content=(Text(text="é"), PICTURE), response=b"{}")) == 2 + 4 + 2
    assert size_of(ToolOutput(content=(Media(mime="a/b", uri="gs://x"),))) == 6


def test_errors_are_marked_and_arguments_have_one_spelling() -> None:
    assert error_output("bad \ud800") == ToolOutput(content=(Text(text="bad ?"),), is_error=True)
    assert canonical({"b": 1, "a": {"d": 1, "c": 2}}) == b'{"a":{"c":2,"d":1},"b":1}'
    assert msgspec.json.decode(canonical({})) == {}
