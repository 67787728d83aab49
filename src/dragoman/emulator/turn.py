"""The current turn as the model sees it: user text, finished steps, tool results, callable tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.contents import (
    blob_of,
    calling_config_of,
    calls_of,
    declarations_of,
    responses_of,
    role_of,
)

_REMINDER = "<system-reminder>"
_BUILT_IN_PARTS = frozenset({"toolCall", "toolResponse", "executableCode", "codeExecutionResult"})


class DeclaredFunction(msgspec.Struct, frozen=True):
    """A declared function; `schema` is `parametersJsonSchema` or `parameters`."""

    name: str
    description: str
    schema: Mapping[str, Any]


class FunctionResult(msgspec.Struct, frozen=True):
    """The response to one call, with the mime types of its media."""

    name: str
    response: Mapping[str, Any]
    media: tuple[str, ...] = ()


class CurrentTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The current turn, which starts at the last user content with text or media of its own."""

    user_text: str
    media: tuple[str, ...]
    finished_steps: int  # model contents with calls since the start of the turn
    results: tuple[FunctionResult, ...]
    last_results: tuple[FunctionResult, ...] = ()  # results of the last step
    used_builtin_tool: bool = False  # a built-in tool was used in this turn


class RequestTools(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request: `functions` may be called now, `declared` are all functions."""

    declared_functions: tuple[DeclaredFunction, ...]
    callable_functions: tuple[DeclaredFunction, ...]
    call_required: bool
    google_search: bool
    url_context: bool = False
    code_execution: bool = False


def read_turn(contents: Sequence[Mapping[str, Any]]) -> CurrentTurn:
    start = next((index for index in reversed(range(len(contents))) if _opens_turn(contents[index])), 0)
    opening = contents[start] if contents else {}
    later = contents[start + 1 :]
    results = [found for content in later if (found := tuple(_function_results(content)))]
    return CurrentTurn(
        user_text="\n".join(_user_texts(opening)),
        media=tuple(_mime_types(opening.get("parts", ()))),
        finished_steps=sum(1 for content in later if calls_of(content)),
        results=tuple(result for step in results for result in step),
        last_results=results[-1] if results else (),
        used_builtin_tool=any(
            _BUILT_IN_PARTS & part.keys() for content in later for part in content.get("parts", ())
        ),
    )


def read_tools(request: Mapping[str, Any]) -> RequestTools:
    tools = request.get("tools", ())
    declared = tuple(
        DeclaredFunction(
            entry.get("name", ""),
            entry.get("description", ""),
            entry.get("parametersJsonSchema") or entry.get("parameters") or {},
        )
        for entry in declarations_of(request)
    )
    config = calling_config_of(request)
    mode = config.get("mode", "AUTO")
    allowed = set(config.get("allowedFunctionNames", ()))
    functions = tuple(item for item in declared if not allowed or item.name in allowed)
    return RequestTools(
        declared_functions=declared,
        callable_functions=() if mode == "NONE" else functions,
        call_required=mode == "ANY" and bool(functions),
        google_search=any("googleSearch" in tool or "googleSearchRetrieval" in tool for tool in tools),
        url_context=any("urlContext" in tool for tool in tools),
        code_execution=any("codeExecution" in tool for tool in tools),
    )


def _opens_turn(content: Mapping[str, Any]) -> bool:
    """Whether a user content has text or media and no function responses."""
    if role_of(content) != "user" or responses_of(content):
        return False
    return any(text.strip() for text in _user_texts(content)) or any(_mime_types(content.get("parts", ())))


def _user_texts(content: Mapping[str, Any]) -> Iterator[str]:
    for part in content.get("parts", ()):
        text = part.get("text", "")
        if text and not text.lstrip().startswith(_REMINDER):
            yield text


def _mime_types(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        blob = blob_of(part)
        if blob is not None:
            yield blob.get("mimeType", "application/octet-stream")


def _function_results(content: Mapping[str, Any]) -> Iterator[FunctionResult]:
    responses = responses_of(content)
    # Media next to the function responses belong to none of them; attach them to the last result.
    beside = tuple(_mime_types(content.get("parts", ()))) if responses else ()
    for index, response in enumerate(responses):
        attached = tuple(_mime_types(response.get("parts", ())))
        last = index == len(responses) - 1
        yield FunctionResult(
            response.get("name", ""), response.get("response", {}), attached + (beside if last else ())
        )
