"""What is known of a body is cut out and not read again; what is read is the same as without that."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from dragoman import jsontext
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import (
    TOOLS_FIELD,
    BodySpec,
    IncrementalBodyReader,
    decode_incrementally,
    decode_naively,
    look_ahead,
)
from dragoman.incremental.fingerprint_index import FingerprintIndex
from dragoman.incremental.lru import cache_lookups
from tests.props.no_caches import nothing_known

_MARK = b'"\xff dragoman knows what stood here"'


class Body(msgspec.Struct):
    model: str = ""
    messages: list[msgspec.Raw] = []
    tools: msgspec.Raw = msgspec.Raw(b"")


class Reading:
    """A dialect of two fields that counts what it must read."""

    def __init__(self, *, tools: bool = True) -> None:
        self.read_bytes: list[int] = []
        self.spec: BodySpec[Body, Any, tuple[str, Any], tuple[str, list[Any], Any]] = BodySpec(
            name="test",
            key="messages",
            tools=TOOLS_FIELD if tools else None,
            parse=self._read,
            elements=lambda wire: wire.messages,
            decode_item=self._piece,
            decode_envelope=lambda wire, *_: self._frame(wire),
            assemble=lambda frame, history: (frame[0], [*history.items], frame[1]),
        )
        self.pieces_read = 0

    @property
    def skimmer(self) -> IncrementalBodyReader[Body, Any]:
        return self.spec.reader

    def _read(self, body: bytes) -> Body:
        self.read_bytes.append(len(body))
        return jsontext.decode_leniently(msgspec.json.Decoder(Body).decode, body)

    def _piece(self, raw: bytes, where: str) -> Any:
        self.pieces_read += 1
        return jsontext.decode(msgspec.json.decode, raw, where)

    def __call__(self, body: bytes) -> tuple[str, list[Any], Any]:
        return decode_incrementally(self.spec, body)

    def _frame(self, wire: Body) -> tuple[str, Any]:
        tools = bytes(wire.tools) if self.spec.tools else b""
        return wire.model, msgspec.json.decode(tools) if tools else None


def _plain(body: bytes) -> tuple[str, list[Any], Any]:
    whole = msgspec.json.decode(body)
    return whole["model"], whole["messages"], whole.get("tools")


_TOOLS = [{"name": f"tool{n}", "about": "x" * 200} for n in range(20)]


def _items(count: int, *, size: int = 300) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{n}: " + "é " * (size // 2)} for n in range(count)]


def _body(items: list[Any], *, tools: Any = _TOOLS, spaced: bool = False, model: str = "m") -> bytes:
    raw = msgspec.json.encode({"model": model, "messages": items, "tools": tools})
    return msgspec.json.format(raw, indent=0) if spaced else raw


@pytest.mark.parametrize("spaced", [False, True])
def test_a_next_turn_reads_what_is_new(spaced: bool) -> None:
    read = Reading()
    for count in (20, 22, 24):
        body = _body(_items(count), spaced=spaced)
        assert read(body) == _plain(body)
    first, *later = read.read_bytes
    assert first > 10_000
    assert max(later) < 2_000
    assert read.pieces_read == 24


def test_another_model_and_other_tools_change_nothing_about_the_history() -> None:
    read = Reading()
    read(_body(_items(20)))
    body = _body(_items(21), model="a name of another length", tools=[{"name": "new", "about": "y" * 3000}])
    assert read(body) == _plain(body)
    assert read.read_bytes[-1] < 5_000


def test_known_tools_in_a_new_conversation() -> None:
    read = Reading()
    read(_body(_items(3)))
    body = _body([{"role": "user", "content": "something else"}])
    assert read(body) == _plain(body)
    assert read.read_bytes[-1] < 300


def test_tools_may_stand_before_the_history() -> None:
    read = Reading()
    for count in (20, 21):
        items = _items(count)
        body = msgspec.json.encode({"model": "m", "tools": _TOOLS, "messages": items})
        assert read(body) == _plain(body)
    assert read.read_bytes[-1] < 2_000


def test_the_end_of_a_history_may_have_been_written_anew() -> None:
    read = Reading()
    read(_body(_items(20)))
    changed: list[Any] = _items(24)
    changed[17]["cache_control"] = {"type": "ephemeral"}
    body = _body(changed)
    assert read(body) == _plain(body)
    assert read.read_bytes[-1] < 4_000


def test_what_changed_long_ago_is_read_as_it_is() -> None:
    read = Reading()
    read(_body(_items(20)))
    changed = _items(21)
    changed[2] = {"role": "user", "content": "short"}
    for items in (changed, [*_items(3), *changed[3:]]):
        body = _body(items)
        assert read(body) == _plain(body)


def test_what_stands_where_the_tools_stood_may_be_something_else() -> None:
    read = Reading()
    for _ in range(2):
        read(_body(_items(20)))
    raw = msgspec.json.encode(_TOOLS)
    for inner in (raw, b"[]"):
        body = b'{"tools":[1],"model":"m","messages":[{"tools":%b' % inner
        body += b"}]}"
        read.skimmer._tools_from_end = len(inner) + 3
        assert read(body) == _plain(body)
    shifted = _body(_items(21))[:-1] + b" " * 7 + b"}"
    assert read(shifted) == _plain(shifted)


def test_without_tools_only_the_history_is_known() -> None:
    read = Reading(tools=False)
    for count in (20, 21):
        body = _body(_items(count))
        model, pieces, tools = read(body)
        assert (model, pieces) == _plain(body)[:2]
        assert tools is None
    assert 4_000 < read.read_bytes[-1] < 7_000


def test_a_list_that_comes_twice_counts_as_it_does_for_json() -> None:
    read = Reading()
    read(_body(_items(20)))
    body = _body(_items(21))[:-1] + b',"messages":[{"role":"user","content":"this one"}]}'
    assert read(body) == ("m", [{"role": "user", "content": "this one"}], _TOOLS)
    body = _body(_items(21))[:-1] + b',"tools":[]}'
    assert read(body) == ("m", _items(21), [])
    body = _body(_items(21))[:-1] + b',"messages":[]}'
    assert read(body) == ("m", [], _TOOLS)


def test_our_own_mark_in_a_body_fools_nobody() -> None:
    read = Reading()
    read(_body(_items(20)))
    body = _body(_items(21))[:-1] + b',"messages":[%b,1]}' % _MARK
    with pytest.raises(InvalidRequest, match="not valid UTF-8") as caught:
        read(body)
    assert caught.value.where == "messages[0]"
    assert len(read.read_bytes) == 2  # not with anything cut out


def test_a_mistake_elsewhere_is_told_with_its_place() -> None:
    read = Reading()
    read(_body(_items(20)))
    with pytest.raises(InvalidRequest) as caught:
        read(_body(_items(21)).replace(b'"model":"m"', b'"model":7'))
    assert caught.value.where == "model"
    with pytest.raises(InvalidRequest) as caught:
        read(_body([*_items(20), 1])[:-1].replace(b",1],", b",nope],") + b"}")
    assert "JSON" in caught.value.message


def test_a_mistake_in_a_new_element_is_told_with_its_number() -> None:
    read = Reading()
    read(_body(_items(20)))

    def refuse(raw: bytes, where: str) -> Any:
        raise InvalidRequest("no", where=where)

    refusing = dataclasses.replace(read.spec, decode_item=refuse)
    object.__setattr__(refusing, "reader", read.skimmer)
    read.skimmer.spec = refusing
    with pytest.raises(InvalidRequest) as caught:
        decode_incrementally(refusing, _body([*_items(20), {"new": 1}]))
    assert caught.value.where == "messages[20]"


def test_elements_that_lie_far_apart_are_not_kept() -> None:
    read = Reading()
    for count in (20, 21):
        body = _body(_items(count)).replace(b'},{"role"', b"}," + b" " * 50 + b'{"role"')
        assert read(body) == _plain(body)
    assert read.read_bytes[-1] > 6_000


def test_elements_with_other_space_here_and_there_are_not_kept() -> None:
    read = Reading()
    for count in (20, 21):
        body = _body(_items(count)).replace(
            b'},{"role":"user","content":"7', b'} , {"role":"user","content":"7'
        )
        assert read(body) == _plain(body)
    assert read.read_bytes[-1] > 6_000


def test_a_list_that_ends_inside_an_element_is_not_kept() -> None:
    """The list that counts is another one, whose elements together are the first's only one."""
    read = Reading()
    number = b"1" * 3000
    body = b'{"model":"m","messages":[%b],"messages":[%b,%b,0]}' % (number, number[:1500], number[:1500])
    assert len(read.skimmer.read(body).history().items) == 3
    assert not read.skimmer.prefixes.find(body, body.index(number)).text


def test_bodies_without_such_a_list() -> None:
    read = Reading()
    assert read(b'{"model":"m"}') == ("m", [], None)
    body = b'{"model":"m","messages" : [1,2]}'
    assert read(body) == ("m", [1, 2], None)


def test_half_characters_are_replaced_as_ever() -> None:
    read = Reading()
    for count in (20, 21):
        raw = _body(_items(count)).replace(b'"model":"m"', b'"model":"\\ud83d"')
        assert read(raw) == ("�", _items(count), _TOOLS)


def test_a_sample_is_not_the_text() -> None:
    known: FingerprintIndex[bytes] = FingerprintIndex(1 << 20, "test")
    text = b"a" * 1024 + b"b" * 500
    known.put(text, text)
    known.put(b"short", b"short")
    assert [*known.find(b"--" + b"a" * 1500, 2)] == [(text,)]  # whoever asks must compare
    assert not [*known.find(b"c" * 4000, 0)]
    assert not [*known.find(b"", 0)]


def test_texts_that_look_alike_are_all_there_the_longest_and_latest_first() -> None:
    known: FingerprintIndex[bytes] = FingerprintIndex(1 << 20, "alike")
    texts = [b"a" * 1024 + word for word in (b"b", b"c", b"d", b"e", b"f")]
    for text in texts:
        known.put(text, text)
    longer = b"a" * 1024 + b"z" * 1024
    known.put(longer, longer)
    assert [*known.find(longer + b"!", 0)] == [(longer,), (*reversed(texts[1:]),)]
    known.grow(texts[3], texts[3], texts[0], texts[0])
    assert [*known.find(b"a" * 2000, 0)] == [(texts[0], texts[4], texts[2], texts[1])]


def test_a_text_that_has_grown_is_kept_once() -> None:
    known: FingerprintIndex[bytes] = FingerprintIndex(1 << 20, "grown")
    first, other, longer = b"a" * 1024, b"a" * 1024 + b"b" * 10, b"a" * 1024 + b"c" * 1024
    known.put(first, first)
    known.put(other, other)
    known.grow(first, first, longer, longer)
    assert [*known.find(longer, 0)] == [(longer,), (other,)]
    known.grow(other, other, other + b"d" * 2048, b"grown")
    assert [*known.find(longer, 0)] == [(longer,)]


def test_what_comes_back_without_its_cache_point_is_not_read_again() -> None:
    """Some programs have a point on each of their last two messages: both move on."""
    read = Reading()
    read.spec = dataclasses.replace(
        read.spec, without_volatile=lambda raws: [raw.replace(b"!", b"") for raw in raws]
    )
    items = _items(30)
    for count in (20, 22, 24, 26):
        before = read.pieces_read
        said = items[:count]
        for at in (count - 1, count - 3):
            said[at] = said[at] | {"content": said[at]["content"] + "!"}
        assert read(_body(said)) == ("m", items[:count], _TOOLS)
        if count > 20:
            assert read.pieces_read - before == 2
    ((runs,),) = [read.skimmer.prefixes._index.find(_body(items), _body(items).index(b'{"role"'))]
    assert len(runs) == 1  # of what it was, nothing is kept


def test_a_lookup_counts_as_what_it_came_to() -> None:
    known: FingerprintIndex[bytes] = FingerprintIndex(1 << 20, "counted")
    known.put(b"a" * 1024, b"a" * 1024)
    next(known.find(b"a" * 1500, 0))
    assert cache_lookups()["counted"] == (1, 0)
    assert [*known.find(b"a" * 1500, 0)]  # whoever asks on has not found it there
    assert cache_lookups()["counted"] == (1, 1)


def test_conversations_that_have_parted_do_not_hide_each_other() -> None:
    read = Reading()
    common = _items(40)
    ways = [[*common, *(item | {"role": way} for item in _items(20))] for way in ("left", "right")]
    for count in (40, 45, 50, 55):
        for way in ways:
            assert read(_body(way[:count])) == ("m", way[:count], _TOOLS)
    before = cache_lookups()["test histories"]
    for way in ways:
        assert read(_body(way)) == ("m", way, _TOOLS)
    after = cache_lookups()["test histories"]
    assert (after[0] - before[0], after[1] - before[1]) == (2, 0)


def test_without_caches_every_body_is_decoded_in_full() -> None:
    read = Reading()
    bodies = [_body(_items(count)) for count in (20, 22)]
    assert [decode_naively(read.spec, body) for body in bodies] == [_plain(body) for body in bodies]
    with nothing_known():
        assert [read(body) for body in bodies] == [_plain(body) for body in bodies]
        assert look_ahead(read.spec, bodies[0], "model", lambda wire: wire.model) == "m"
    assert read.pieces_read == 2 * (20 + 22)
    assert read.read_bytes == [*map(len, bodies), *map(len, bodies), len(bodies[0])]
