"""Parsed requests: accessors for contents and tools, the cache of parsed fragments, and the current turn.

Each request of a conversation repeats most of the previous one. A content that was parsed before is not parsed,
counted or validated again: `ParsedRequest` consists of fragments, which are cached by their bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.incremental.lru import LruCache

Content = Mapping[str, Any]


def declarations_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the function declarations of all tools."""
    return [entry for tool in request.get("tools", ()) for entry in tool.get("functionDeclarations", ())]


def calling_config_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    config: Mapping[str, Any] = request.get("toolConfig", {}).get("functionCallingConfig", {})
    return config


def role_of(content: Content) -> str:
    """Return the role; a missing or empty role means the user."""
    return content.get("role") or "user"


def calls_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionCall"] for part in content.get("parts", ()) if "functionCall" in part]


def responses_of(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionResponse"] for part in content.get("parts", ()) if "functionResponse" in part]


def blob_of(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the inline data or the file reference of a part, or None."""
    return part.get("inlineData") or part.get("fileData")


#: Contract, message type and raw bytes: everything that a parsed value depends on.
FragmentKey = tuple[str, str, Hashable]


class CachedFragment:
    """A parsed value, shared by all requests with the same bytes, so it must not be modified.

    `tokens` caches the token counts by modality. `passed_rules` names the rule set that the fragment passed last.
    """

    __slots__ = ("passed_rules", "tokens", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.tokens: dict[str, int] | None = None
        self.passed_rules = ""


class ParsedRequest(dict[str, Any]):
    """A parsed request in canonical spelling, with its cached pieces.

    There is one piece for each content and one for all other fields together.
    """

    __slots__ = ("content_fragments", "other_fields")

    def __init__(self, contents: list[CachedFragment] | None, rest: CachedFragment) -> None:
        super().__init__(rest.value)
        self.other_fields = rest
        self.content_fragments = contents or []
        if contents is not None:
            self["contents"] = [piece.value for piece in contents]

    def unchecked_part(self, rules: str) -> dict[str, Any]:
        """Return the request without the pieces that already passed these rules.

        At least one content remains, because a request without contents is invalid.
        """
        fresh = [piece.value for piece in self.content_fragments if piece.passed_rules != rules]
        part: dict[str, Any] = (
            {} if self.other_fields.passed_rules == rules else dict(self.other_fields.value)
        )
        if "contents" in self:
            part["contents"] = fresh or self["contents"][-1:]
        return part

    def mark_checked(self, rules: str) -> None:
        """Record that all pieces passed these rules."""
        self.other_fields.passed_rules = rules
        for piece in self.content_fragments:
            piece.passed_rules = rules


#: The limit counts the raw bytes; the parsed values take a few times as much memory.
FRAGMENT_CACHE: LruCache[FragmentKey, CachedFragment] = LruCache(max_bytes=32 * 1024 * 1024)
#: Emulators in several threads share the cache.
_CACHE_LOCK = threading.Lock()


def find_fragment(key: FragmentKey) -> CachedFragment | None:
    with _CACHE_LOCK:
        return FRAGMENT_CACHE.find(key)


def store_fragment(key: FragmentKey, value: Any, weight: int) -> CachedFragment:
    piece = CachedFragment(value)
    with _CACHE_LOCK:
        FRAGMENT_CACHE.put(key, weight, piece)
    return piece


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
    """The tools of a request: `callable_functions` may be called now, `declared_functions` are all functions."""

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
