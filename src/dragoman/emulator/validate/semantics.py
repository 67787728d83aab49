"""Stage 3: the features and limits of the model, then the contents. Raises the first violation.

The contents have an order of roles, calls paired with function responses, media types and thought signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.emulator.errors import ApiError, catch_all_error
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.parsed_request import (
    Content,
    blob_of,
    calling_config_of,
    calls_of,
    declarations_of,
    responses_of,
    role_of,
)
from dragoman.emulator.routes import Backend
from dragoman.emulator.signature import TEXT_TARGET, Signer, call_target
from dragoman.emulator.tokens import count_prompt
from dragoman.emulator.validate.fields import STOP_LIMIT, check_vertex_schema

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


def check_roles(contents: Sequence[Content], model: EmulatedModel, backend: Backend) -> None:
    for content in contents:
        role = content.get("role") or ""
        if not role and not backend.is_vertex:
            continue
        if role in (_ROLES if model.strict_roles else _OLD_ROLES):
            continue
        if model.strict_roles and role:
            raise ApiError(f"Role '{role}' is not supported. Please use a valid role: MODEL, USER.")
        raise ApiError("Please use a valid role: user, model.")


def check_turns(contents: Sequence[Content], model: EmulatedModel) -> None:
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
                f" Got function response with name '{responses[0]['name']}'." if model.strict_roles else ""
            )
            raise ApiError(_RESPONSE_TURN + named)
        if calls and position + 1 < len(turns):
            following, http_response = turns[position + 1]
            _check_pairs(calls, responses_of(http_response), following)


def check_ending(contents: Sequence[Content], model: EmulatedModel) -> None:
    """Check the last turn.

    Strict models do not continue a model turn, and a user content with empty text after it does not hide it.
    Other models only reject unanswered calls at the end.
    """
    turns = list(contents)
    if model.strict_roles:
        while turns and role_of(turns[-1]) != "model" and _is_empty(turns[-1]):
            turns.pop()
        if turns and role_of(turns[-1]) == "model":
            raise ApiError(_TRAILING)
    elif turns and _named_calls(turns[-1]):
        raise ApiError(_COUNTS)


def check_responses(contents: Sequence[Content], model: EmulatedModel) -> None:
    """Check the media of function responses: a `$ref` must name a media part of the same response.

    Only models with `accepts_response_media` accept media there.
    """
    for index, content in enumerate(contents):
        for response in responses_of(content):
            parts = response.get("parts", ())
            if parts and not model.accepts_response_media:
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


_PREFIXES = ("text/", "audio/", "video/")
_MIME_TYPES = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
        "application/pdf",
        "application/x-javascript",
        "application/x-python",
    }
)
_IN_RESPONSES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
#: (offset, magic bytes) of the supported image formats. Google ignores the declared mime type.
_IMAGE_MAGIC = ((0, b"\x89PNG\r\n\x1a\n"), (0, b"\xff\xd8\xff"), (8, b"WEBP"), (4, b"ftyp"))
_BAD_IMAGE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)
_STUDIO_FILES = "https://generativelanguage.googleapis.com/"


def check_media(request: Mapping[str, Any], backend: Backend) -> None:
    for content in request.get("contents", ()):
        for blob, inside_response in _blobs(content.get("parts", ())):
            _check_blob(blob, inside_response, backend)
    for part in request.get("systemInstruction", {}).get("parts", ()):
        if "text" not in part:
            raise catch_all_error("system_instruction takes text parts only")


def _check_blob(blob: Mapping[str, Any], inside_response: bool, backend: Backend) -> None:
    mime = blob.get("mimeType", "")
    known = mime in _IN_RESPONSES if inside_response else mime in _MIME_TYPES or mime.startswith(_PREFIXES)
    if not known and ("data" in blob or mime):
        raise ApiError(f"Unsupported MIME type: {mime}")
    if "fileUri" in blob:
        _check_address(blob["fileUri"], backend)
    elif mime.startswith("image/"):
        if not _is_image(blob.get("data", b"")):
            raise ApiError(_BAD_IMAGE)
    elif not blob.get("data"):
        raise catch_all_error(f"empty {mime} data")


def _check_address(address: str, backend: Backend) -> None:
    if backend.is_vertex:
        if address.startswith(_STUDIO_FILES):
            raise ApiError(f"Permission denied: Vertex cannot read {address}", code=403)
    elif address.startswith("gs://"):
        raise ApiError("Invalid or unsupported file uri: " + address)


def _is_image(data: bytes) -> bool:
    return any(data.startswith(magic, offset) for offset, magic in _IMAGE_MAGIC)


def _blobs(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    for part in parts:
        blob = blob_of(part)
        if blob is not None:
            yield blob, False
        for inner in part.get("functionResponse", {}).get("parts", ()):
            yield blob_of(inner) or {}, True


def check_signatures(
    contents: Sequence[Mapping[str, Any]], model: EmulatedModel, backend: Backend, signer: Signer
) -> None:
    """Reject wrong signatures anywhere, and missing ones in the current turn (Gemini 3).

    Other models ignore signatures.
    """
    if not model.requires_signatures:
        return
    start = _turn_start(contents)
    for index, content in enumerate(contents):
        parts = content.get("parts", ())
        for part in parts:
            signature = part.get("thoughtSignature")
            if signature:
                signer.verify(signature, backend, model, _signature_target(part))
        if index > start:
            _check_signed(parts, index)


def _check_signed(parts: Sequence[Mapping[str, Any]], index: int) -> None:
    first = next((part for part in parts if part.get("functionCall", {}).get("name")), None)
    if first is not None and not first.get("thoughtSignature"):
        raise _missing_signature_error(first["functionCall"]["name"], index + 1)
    for part in parts:
        if ("toolCall" in part or "toolResponse" in part) and not part.get("thoughtSignature"):
            raise catch_all_error(
                f"contents[{index}]: tool calls and tool responses come back with their signatures"
            )


def _turn_start(contents: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the last user content without function responses, or -1."""
    for index in reversed(range(len(contents))):
        if role_of(contents[index]) == "user" and not responses_of(contents[index]):
            return index
    return -1


def _signature_target(part: Mapping[str, Any]) -> str:
    return call_target(part["functionCall"].get("name", "")) if "functionCall" in part else TEXT_TARGET


def _missing_signature_error(name: str, position: int) -> ApiError:
    return ApiError(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
        "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
        f"data, function call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


Rule = Callable[[Mapping[str, Any], EmulatedModel, Backend], None]

#: The client executes these itself, so they can be combined (recorded on 2.5-computer-use).
_NOT_BUILT_IN = frozenset({"functionDeclarations", "computerUse"})

#: The tools that Vertex allows to be combined.
_SEARCH_TOOLS = frozenset(
    {
        "googleSearch",
        "googleSearchRetrieval",
        "enterpriseWebSearch",
        "parallelAiSearch",
        "exaAiSearch",
        "retrieval",
        "googleMaps",
        "urlContext",
    }
)


def check_generation(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    for rule in _RULES:
        rule(request, model, backend)


def _check_declarations(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    del model
    seen: set[str] = set()
    for declaration in declarations_of(request):
        name = declaration["name"]
        if name in seen:
            raise ApiError(f"Duplicate function declaration found: {name}")
        seen.add(name)
        if backend.is_vertex and "parameters" in declaration:
            check_vertex_schema(name, declaration["parameters"])
    if not seen and "functionCallingConfig" in request.get("toolConfig", {}):
        raise ApiError("Function calling config is set without function_declarations.")


def _check_tool_combination(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    kinds = {kind for tool in request.get("tools", ()) for kind in tool.keys() - {"computerUse"}}
    if backend.is_vertex and len(kinds) > 1 and not kinds <= _SEARCH_TOOLS:
        raise ApiError("Multiple tools are supported only when they are all search tools.")
    if not (kinds - _NOT_BUILT_IN and declarations_of(request)):
        return
    if not model.is_gemini3_or_later:
        raise ApiError("Tool use with function calling is unsupported")
    if not request.get("toolConfig", {}).get("includeServerSideToolInvocations"):
        raise ApiError(
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with "
            "Function calling."
        )
    if calling_config_of(request).get("mode") == "AUTO":
        raise catch_all_error(
            "mode AUTO is not supported where built-in tools stand beside functions: use VALIDATED"
        )


def _check_response_format(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    del backend
    config = request.get("generationConfig", {})
    mime = config.get("responseMimeType") or "text/plain"
    if ("responseSchema" in config or "responseJsonSchema" in config) and mime not in (
        "application/json",
        "text/x.enum",
    ):
        raise ApiError(f"Response_schema with a response mime type '{mime}' is unsupported")
    if mime == "text/x.enum" and "responseSchema" in config and not config["responseSchema"].get("enum"):
        raise catch_all_error("text/x.enum wants a response_schema with an enum")
    if mime == "text/plain":
        return
    if not model.is_gemini3_or_later and any(
        tool.keys() - _NOT_BUILT_IN for tool in request.get("tools", ())
    ):
        raise ApiError(f"Tool use with a response mime type: '{mime}' is unsupported")
    if not declarations_of(request):
        return
    if not model.is_gemini3_or_later:
        raise ApiError(f"Function calling with a response mime type: '{mime}' is unsupported")
    if calling_config_of(request).get("mode") == "ANY":
        raise ApiError(f"Function calling mode ANY with a response mime type: '{mime}' is unsupported")


def _check_sampling(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    config = request.get("generationConfig", {})
    penalised = any(config.get(name) for name in ("presencePenalty", "frequencyPenalty"))
    if penalised and (model.is_gemini3_or_later or not backend.is_vertex):
        raise ApiError(
            f"Penalty is not enabled for {'this model' if model.is_gemini3_or_later else f'models/{model.id}'}"
        )
    if model.is_gemini3_or_later and config.get("candidateCount", 1) > 1:
        raise ApiError("Multiple candidates is not enabled for this model")
    if config.get("responseLogprobs") and not backend.is_vertex:
        raise ApiError(f"Logprobs is not enabled for models/{model.id}")
    if not backend.is_vertex:
        return
    stops = len(config.get("stopSequences", ()))
    if stops > STOP_LIMIT:
        raise _vertex_range_error("stopSequences", stops, STOP_LIMIT + 1)
    if config.get("maxOutputTokens", 1) > model.max_output_tokens:
        raise _vertex_range_error("maxOutputTokens", config["maxOutputTokens"], model.max_output_tokens + 1)


def _check_thinking(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    thinking = request.get("generationConfig", {}).get("thinkingConfig", {})
    budget = thinking.get("thinkingBudget")
    level = thinking.get("thinkingLevel", "THINKING_LEVEL_UNSPECIFIED")
    if level != "THINKING_LEVEL_UNSPECIFIED":
        if budget is not None:
            raise ApiError("You can only set only one of thinking budget and thinking level.")
        _check_level(level, model, backend)
    if budget is not None and not model.ignores_budget:
        _check_budget(budget, model)


def _check_level(level: str, model: EmulatedModel, backend: Backend) -> None:
    if not model.thinking_levels:
        raise ApiError("Thinking level is not supported for this model.")
    if level not in model.thinking_levels:
        if backend.is_vertex:
            raise ApiError(f"Thinking level is unsupported: THINKING_LEVEL_{level}")
        raise ApiError(f"Thinking level {level} is not supported for this model.")


def _check_budget(budget: int, model: EmulatedModel) -> None:
    if budget == 0 and model.zero_budget_error:
        raise ApiError(model.zero_budget_error)
    allowed = model.budget
    if allowed is None or budget == -1 or (budget == 0 and allowed.allows_zero):
        return
    if not allowed.low <= budget <= allowed.high:
        low = 0 if allowed.allows_zero and allowed.low == 1 else allowed.low
        raise ApiError(
            f"The thinking budget {budget} is invalid. Please choose a value between "
            f"{low} and {allowed.high}."
        )


def _check_safety(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    del model, backend
    categories = [context.get("category") for context in request.get("safetySettings", ())]
    if len(categories) != len(set(categories)):
        raise catch_all_error("more than one safety setting for a category")


def _check_size(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> None:
    del backend
    tokens = sum(count_prompt(request, model.image_tokens).values())
    if tokens > model.input_limit:
        raise ApiError(
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({model.input_limit})."
        )


def _vertex_range_error(name: str, value: int, end: int) -> ApiError:
    return ApiError(
        f"Unable to submit request because it has a {name} value of {value} but the supported range is "
        f"from 1 (inclusive) to {end} (exclusive). Update the value and try again."
    )


_RULES: tuple[Rule, ...] = (
    _check_declarations,
    _check_tool_combination,
    _check_response_format,
    _check_sampling,
    _check_thinking,
    _check_safety,
    _check_size,
)
