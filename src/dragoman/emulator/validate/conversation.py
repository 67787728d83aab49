"""Stage 3, second half: the order of roles, and the pairing of function responses with calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.emulator.backend import Backend
from dragoman.emulator.contents import Content, blob_of, calls_of, responses_of, role_of
from dragoman.emulator.models import GeminiModel
from dragoman.emulator.refusal import ApiError, catch_all_error

_OLD_ROLES = frozenset({"user", "model", "function", "tool", "system"})
_ROLES = frozenset({"user", "model"})

_CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function "
    "response turn."
)
_RESPONSE_TURN = "Please ensure that function response turn comes immediately after a function call turn."
_COUNTS = (
    "Please ensure that the number of function response parts is equal to the number of function call "
    "parts of the function call turn."
)
_TRAILING = "Requests ending with a model turn are not supported."


def check_roles(contents: Sequence[Content], model: GeminiModel, backend: Backend) -> None:
    for content in contents:
        role = content.get("role") or ""
        if not role and not backend.is_vertex:
            continue
        if role in (_ROLES if model.strict_turns else _OLD_ROLES):
            continue
        if model.strict_turns and role:
            raise ApiError(f"Role '{role}' is not supported. Please use a valid role: MODEL, USER.")
        raise ApiError("Please use a valid role: user, model.")


def check_turns(contents: Sequence[Content], model: GeminiModel) -> None:
    """Check the order and number of function calls and responses.

    A call must follow a user or response turn, responses must follow their calls, and there must be as many
    responses as calls.
    """
    turns = [(index, content) for index, content in enumerate(contents) if not _is_stream_fragment(content)]
    for position, (_, content) in enumerate(turns):
        previous = turns[position - 1][1] if position else {"role": "model"}
        calls, responses = _named_calls(content), responses_of(content)
        if calls and (role_of(content) != "model" or role_of(previous) == "model"):
            raise ApiError(_CALL_TURN)
        if responses and (role_of(content) == "model" or not _named_calls(previous)):
            named = (
                f" Got function response with name '{responses[0]['name']}'." if model.strict_turns else ""
            )
            raise ApiError(_RESPONSE_TURN + named)
        if calls and position + 1 < len(turns):
            following, answer = turns[position + 1]
            _check_pairs(calls, responses_of(answer), following)


def check_ending(contents: Sequence[Content], model: GeminiModel) -> None:
    """Check the last turn.

    Strict models do not continue a model turn, and a user content with empty text after it does not hide it.
    Other models only reject unanswered calls at the end.
    """
    turns = list(contents)
    if model.strict_turns:
        while turns and role_of(turns[-1]) != "model" and _is_empty(turns[-1]):
            turns.pop()
        if turns and role_of(turns[-1]) == "model":
            raise ApiError(_TRAILING)
    elif turns and _named_calls(turns[-1]):
        raise ApiError(_COUNTS)


def check_responses(contents: Sequence[Content], model: GeminiModel) -> None:
    """Check the media of function responses: a `$ref` must name a media part of the same response.

    Only models with `takes_response_media` accept media there.
    """
    for index, content in enumerate(contents):
        for response in responses_of(content):
            parts = response.get("parts", ())
            if parts and not model.takes_response_media:
                raise catch_all_error(f"contents[{index}]: media inside a function response needs Gemini 3")
            names = {(blob_of(part) or {}).get("displayName") for part in parts}
            if not _references(response.get("response", {})) <= names:
                raise catch_all_error(
                    f"contents[{index}]: a $ref key in a function response names no media part of it"
                )


def check_tool_parts(contents: Sequence[Content]) -> None:
    """Check that every toolCall is sent back together with its toolResponse."""
    for index, content in enumerate(contents):
        parts = content.get("parts", ())
        calls = [str(part["toolCall"].get("id")) for part in parts if "toolCall" in part]
        answers = [str(part["toolResponse"].get("id")) for part in parts if "toolResponse" in part]
        if sorted(calls) != sorted(answers):
            raise catch_all_error(
                f"contents[{index}]: a tool call without its tool response, or the other way round"
            )


def _check_pairs(calls: Sequence[Content], responses: Sequence[Content], index: int) -> None:
    if len(calls) != len(responses):
        raise ApiError(_COUNTS)
    ids = [call.get("id") for call in calls]
    by_id = {call.get("id"): call["name"] for call in calls}
    for position, response in enumerate(responses):
        given = response.get("id")
        if given and all(ids):
            if given not in by_id:
                raise catch_all_error(
                    f"contents[{index}]: no call has the id {given!r}, or it was answered twice"
                )
            expected = by_id.pop(given)
        else:
            expected = calls[position]["name"]
        if response["name"] != expected:
            raise catch_all_error(
                f"contents[{index}]: response of {response['name']!r} where {expected!r} was called"
            )


def _named_calls(content: Content) -> list[Content]:
    """Return the function calls of a content that have a name.

    On Vertex a call without a name continues the arguments of the call before it.
    """
    return [call for call in calls_of(content) if call.get("name")]


def _is_stream_fragment(content: Content) -> bool:
    """Whether a content has only thoughts, streamed arguments or empty text.

    Google's SDK stores each of these chunks as a content of its own.
    """
    return role_of(content) == "model" and all(
        part.get("thought")
        or part.get("text") == ""
        or ("functionCall" in part and not part["functionCall"].get("name"))
        for part in content.get("parts", ())
    )


def _is_empty(content: Content) -> bool:
    return all(part.get("text") == "" for part in content.get("parts", ()))


def _references(value: Any) -> set[Any]:
    found: set[Any] = set()
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if "$ref" in node:
                found.add(str(node["$ref"]))
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return found
