"""Ways to spoil a request: a few at once, in its bytes or in its JSON, all from one random number."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from dragoman.emulator.routes import Backend
from dragoman.emulator.validate.descriptors import load_messages
from tests.fuzz.emulator_seeds import BODIES

#: A container and the key or index of something in it.
Spot = tuple[Any, Any]

NAMES = sorted(
    {name for message in load_messages(Backend("studio", "v1beta")).values() for name in message.fields}
)
_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2.0, 1.5, -0.0, 1e308, 2**31, 2**63, 2**64, -(2**63), 10**30, "", " ", "0", "1e3",
    "NaN", "Infinity", "-Infinity", "true", "ANY", "bogus", "OBJECT", "array", "models/x", "\u0000", "é😀", "$ref",
    "-_+/", "abcde", "====", "application/pdf", "image/png", "gs://x/y", "1s", "2026-01-01T00:00:00Z", "user",
    "[" * 50, "(" * 30, "x" * 5000, [], {}, [None], [[]], [{}], {"": 1}, {"$ref": "#"}, {"$ref": "#/properties/a"},
    {"type": "object"}, {"type": "ARRAY"}, {"text": "x"}, {"parts": []}, {"role": "model"}, {"functionCall": {}},
    {"anyOf": []}, {"const": {}}, {"pattern": "("}, {"minLength": 10**9}, {"minItems": -5}, {"multipleOf": 0},
)  # fmt: skip
_DEEP = "<deep>"
_DEPTHS = (1, 2, 29, 31, 98, 101, 400, 3000)
_BLOBS = (
    b"\xef\xbb\xbf",
    b"\x1f\x8b\x08\x00",
    b"\xff",
    b"\x00",
    b"NaN",
    b"\\ud83d",
    b'"',
    b"{",
    b"]",
    b"1e999",
    b",",
)


def mutate(body: bytes, chance: random.Random) -> bytes:
    """The body, spoilt."""
    if chance.random() < 0.25:
        return _spoil_bytes(body, chance)
    document = json.loads(body)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        spots = list(_spots(document))
        if spots:
            chance.choice(_CHANGES)(chance.choice(spots), spots, chance)
    return _write(document, chance)


def _spots(document: Any) -> list[Spot]:
    found: list[Spot] = []
    todo = [document]
    while todo:
        node = todo.pop()
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        found.extend((node, key) for key in keys)
        todo.extend(child for child in (node[key] for key in keys) if isinstance(child, dict | list))
    return found


def _swap(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, key = spot
    node[key] = copy.deepcopy(chance.choice(_ODD))


def _rename(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, key = spot
    if isinstance(node, dict):
        others = [name for _, name in spots if isinstance(name, str)]
        new = chance.choice(
            (chance.choice(NAMES), chance.choice(NAMES), chance.choice(others), "", key.upper())
        )
        node[new] = node.pop(key)


def _delete(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, key = spot
    del node[key]


def _repeat(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    """The same thing twice: as an item, or under another name."""
    node, key = spot
    if isinstance(node, list):
        node.insert(chance.randrange(len(node) + 1), copy.deepcopy(node[key]))
    else:
        node[chance.choice(NAMES)] = copy.deepcopy(node[key])


def _move(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, key = spot
    other, place = chance.choice(spots)
    node[key] = copy.deepcopy(other[place])


def _graft(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    """A part of another good request."""
    node, key = spot
    other, place = chance.choice(_spots(chance.choice(list(BODIES.values()))))
    node[key] = copy.deepcopy(other[place])


def _add(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, _ = spot
    if isinstance(node, dict):
        node[chance.choice(NAMES)] = copy.deepcopy(chance.choice(_ODD))


def _nest(spot: Spot, spots: list[Spot], chance: random.Random) -> None:
    node, key = spot
    node[key] = _DEEP


_CHANGES: tuple[Callable[[Spot, list[Spot], random.Random], None], ...] = (
    _swap, _swap, _swap, _rename, _delete, _repeat, _move, _graft, _add, _nest,
)  # fmt: skip


def _write(document: Any, chance: random.Random) -> bytes:
    """JSON text; what is to be deep is put in as text, for nothing in Python likes to hold it."""
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5)
    while _DEEP in text:
        name = chance.choice(("properties", "items", "anyOf", "any_of", "args", "x", "parts", "", ""))
        begin, end = (f'{{"{name}":', "}") if name else ("[", "]")
        depth = chance.choice(_DEPTHS)
        inside = chance.choice(('{"type": "STRING"}', '{"text": "x"}', "1"))
        text = text.replace(f'"{_DEEP}"', begin * depth + inside + end * depth, 1).replace(_DEEP, "deep", 1)
    return text.encode()


def _spoil_bytes(body: bytes, chance: random.Random) -> bytes:
    spoilt = bytearray(body)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(spoilt) + 1)
        end = min(len(spoilt), at + chance.choice((1, 2, 8, 60)))
        match chance.randrange(7):
            case 0 if at < len(spoilt):
                spoilt[at] ^= 1 << chance.randrange(8)
            case 1:
                del spoilt[at:]
            case 2:
                del spoilt[at:end]
            case 3:
                spoilt[at:at] = spoilt[at:end]
            case 4:
                spoilt[at:at] = chance.choice(_BLOBS)
            case 5:
                spoilt[:0] = chance.choice(_BLOBS)
            case _:
                _repeat_key(spoilt, chance)
    return bytes(spoilt) if chance.random() < 0.97 else bytes(spoilt).decode("latin-1").encode("utf-16")


def _repeat_key(spoilt: bytearray, chance: random.Random) -> None:
    """A key that stands twice in one object."""
    at = spoilt.find(b"{", chance.randrange(len(spoilt) + 1))
    if at >= 0:
        spoilt[at + 1 : at + 1] = b'"%s": {}, ' % chance.choice(
            (b"contents", b"parts", b"text", b"tools", b"type")
        )
