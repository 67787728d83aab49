"""Every answer of Google's that a golden conversation or a corpus case has, of whatever dialect."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TESTS = Path(__file__).parents[3]
#: What stands for a tool, its arguments and another tool in the searches' answers.
_BLANKS = (("SEARCH", "fs_read"), ("ARGS", '{"query":"x"}'), ("FOUND", "fs_read"))


def google_answers() -> dict[str, bytes]:
    """By where they come from; as Google frames them."""
    found = {**_streams(), **_searches()}
    for path in sorted(TESTS.glob("golden/*/*.json")):
        case = json.loads(path.read_text("utf-8"))
        if "chunks" in case:
            found[_name(path)] = _framed(case["chunks"])
    for path in sorted(TESTS.glob("golden/agent/*.txt")):
        for number, chunks in enumerate(_at_the_wire(path)):
            found[f"{_name(path)}/{number}"] = _framed(chunks)
    for path in sorted(TESTS.glob("corpus/*/*.json")):
        given = json.loads(path.read_text("utf-8"))["input"]
        for number, data in enumerate(_said_in_corpus(given)):
            found[f"corpus/{path.parent.name}/{path.stem}/{number}"] = data
    return found


def _streams() -> dict[str, bytes]:
    paths = sorted(TESTS.glob("golden/*/*.upstream.sse"))
    return {_name(path): path.read_bytes().replace(b"\n", b"\r\n") for path in paths}


def _searches() -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in ("searches", "uses"):
        path = TESTS / "golden" / "tool_search" / f"{name}.sse"
        text = path.read_text("utf-8")
        for blank, word in _BLANKS:
            text = text.replace(blank, word)
        found[_name(path)] = text.replace("\n", "\r\n").encode()
    return found


def _at_the_wire(path: Path) -> list[list[Json]]:
    """The chunks behind every `<--` of an agent's conversation."""
    answers: list[list[Json]] = []
    is_answer = False
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("<-- 200"):
            answers.append([])
        is_answer = line.startswith("<-- 200") or (is_answer and line.startswith("    {"))
        if is_answer and line.startswith("    "):
            answers[-1].append(json.loads(line))
    return answers


def _said_in_corpus(given: Json) -> list[bytes]:
    if "segments_b64" in given:
        return [b"".join(map(base64.b64decode, given["segments_b64"]))]
    turns = given.get("turns", [given])
    chunks = [
        turn.get("gemini_chunks")
        or turn.get("chunks")
        or [turn.get("gemini_response") or turn.get("response")]
        for turn in turns
    ]
    return [_framed(turn) for turn in chunks if turn[0]]


def _framed(chunks: list[Any]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


def _name(path: Path) -> str:
    return f"golden/{path.parent.name}/{path.name.split('.')[0]}"
