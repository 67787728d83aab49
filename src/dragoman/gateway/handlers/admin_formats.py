"""The formats of tools and results in the admin API: each entry may have the format of any supported API."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.ir import Text, Tool, ToolResult
from dragoman.tools.convert import FORMATS, gemini

MAX_TOOLS = 512  # Google's documented maximum of functionDeclarations in one tool
Json = dict[str, Any]

_DECLARATIONS = ("functionDeclarations", "function_declarations")
#: A field that only the tools of one API have -> the name of that format.
_FORMAT_BY_FIELD = {
    "function": "openai_chat",
    "input_schema": "anthropic",
    "toolSpecification": "amazonq",
    "toolSpec": "bedrock",
}
_NO_FUNCTION = (
    "this is no function: a session's tools are functionDeclarations, or functions as Anthropic's, OpenAI's and"
    " Amazon's APIs declare them"
)
_NO_RESULT = (
    'this is no result: give {"call_id": …, "response": {…}}, or "output", or "error", or a result in the words of'
    " Anthropic's, OpenAI's, Bedrock's or Google's API"
)


def decode_tools(entries: Sequence[Json]) -> tuple[Tool, ...]:
    """Decode the functions of all entries; raise InvalidRequest for tools that are not functions."""
    tools: list[Tool] = []
    for index, entry in enumerate(entries):
        where = f"tools[{index}]"
        form, wire = _tool_format(entry, where)
        read = functools.partial(FORMATS[form].decode_tools, [wire])
        tools += _decode_at(read, "tools[0]", where)
    names: set[str] = set()
    for tool in tools:
        if tool.name in names:
            raise InvalidRequest(f"{tool.name!r} is declared twice", where="tools")
        names.add(tool.name)
    if len(tools) > MAX_TOOLS:
        raise InvalidRequest(f"at most {MAX_TOOLS} tools", where="tools")
    # Drop the original encoding: a tool may be renamed, and its schema is encoded per backend.
    return tuple(msgspec.structs.replace(tool, where=tool.name, native=b"") for tool in tools)


def _tool_format(entry: Json, where: str) -> tuple[str, Json]:
    if any(name in entry for name in _DECLARATIONS):
        if len(entry) > 1:
            raise InvalidRequest("only functions can be a session's tools", where=where)
        return "gemini", entry
    for field, form in _FORMAT_BY_FIELD.items():
        if field in entry:
            return form, entry
    if entry.get("type") == "function":
        return "openai_responses", entry
    if "name" in entry and "type" not in entry:
        return "gemini", {"functionDeclarations": [entry]}
    raise InvalidRequest(_NO_FUNCTION, where=where)


def encode_tools(tools: Sequence[Tool]) -> list[Json]:
    """Return the tools as Google's functionDeclarations, with unchanged schemas."""
    declarations = [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "parametersJsonSchema": msgspec.json.decode(tool.schema),
        }
        for tool in tools
    ]
    return [{"functionDeclarations": declarations}] if declarations else []


def check_tool_config(config: Json | None, tools: Sequence[Tool], *, alone: bool) -> None:
    """Raise InvalidRequest for a toolConfig that Google would reject.

    With `alone` the client's tools are not declared, so allowed names must be in `tools`.
    """
    if config is None:
        return
    choice = gemini.decode_choice(config)
    where = "toolConfig.functionCallingConfig.allowedFunctionNames"
    if choice.names and choice.mode not in ("any", "validated"):
        raise InvalidRequest("names can be allowed with mode ANY or VALIDATED only", where=where)
    known = {tool.name for tool in tools}
    for name in choice.names if alone else ():
        if name not in known:
            raise InvalidRequest(f"there is no tool named {name!r} in this session", where=where)


def decode_results(entries: Sequence[Json]) -> list[ToolResult]:
    """Decode the results of all entries; raise InvalidRequest for an unknown format or a missing call id."""
    results: list[ToolResult] = []
    for index, entry in enumerate(entries):
        where = f"results[{index}]"
        read = next((read for names, read in _RESULT_DECODERS.items() if set(names) <= entry.keys()), None)
        if read is None:
            raise InvalidRequest(_NO_RESULT, where=where)
        result = _decode_at(lambda read=read, entry=entry: read(entry), "", where)  # type: ignore[misc]
        if not isinstance(result.call_id, str) or not result.call_id:
            raise InvalidRequest("a result names its call", where=where)
        results.append(result)
    return results


def _with_response(entry: Json) -> ToolResult:
    response = entry["response"]
    if not isinstance(response, dict):
        raise InvalidRequest("a response is an object; text goes into output", where="response")
    error = response.keys() == {"error"}
    return ToolResult(call_id=entry["call_id"], response=msgspec.json.encode(response), is_error=error)


def _with_error(entry: Json) -> ToolResult:
    return ToolResult(call_id=entry["call_id"], content=(Text(text=_text(entry["error"])),), is_error=True)


def _with_output(entry: Json) -> ToolResult:
    """Read text or a content list like a `function_call_output`; wrap any other JSON value as a response."""
    output = entry["output"]
    if isinstance(output, str | list):
        return _decode_result("openai_responses", [{"type": "function_call_output", **entry}])
    wrapped = output if isinstance(output, dict) else {"output": output}
    return ToolResult(call_id=entry["call_id"], response=msgspec.json.encode(wrapped))


def _as_anthropic(entry: Json) -> ToolResult:
    return _decode_result("anthropic", [{"role": "user", "content": [{"type": "tool_result", **entry}]}])


def _as_chat(entry: Json) -> ToolResult:
    return _decode_result("openai_chat", [{"role": "tool", **entry}])


def _as_block(entry: Json) -> ToolResult:
    return _decode_result("bedrock", [{"role": "user", "content": [entry]}])


def _as_part(entry: Json) -> ToolResult:
    """Read a Gemini part. It needs an id, because the name alone does not identify a call."""
    if not isinstance(entry["functionResponse"], dict) or not entry["functionResponse"].get("id"):
        raise InvalidRequest("a functionResponse names its call by id", where="functionResponse.id")
    return _decode_result("gemini", [{"role": "user", "parts": [entry]}])


#: Fields of an entry -> its decoder; the first match counts.
_RESULT_DECODERS: dict[tuple[str, ...], Callable[[Json], ToolResult]] = {
    ("call_id", "response"): _with_response,
    ("call_id", "error"): _with_error,
    ("call_id", "output"): _with_output,
    ("tool_use_id",): _as_anthropic,
    ("tool_call_id", "content"): _as_chat,
    ("functionResponse",): _as_part,
    ("toolResult",): _as_block,
}


def _decode_result(form: str, wire: list[Any]) -> ToolResult:
    (result,) = FORMATS[form].decode_results(wire)
    return result


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _decode_at(read: Callable[[], Any], found: str, where: str) -> Any:
    """Call `read` and move the place of its InvalidRequest below `where`."""
    try:
        return read()
    except InvalidRequest as error:
        inner = error.where.removeprefix(found) if found and error.where.startswith(found) else ""
        if not found:
            inner = f".{error.where}" if error.where else ""
        raise InvalidRequest(error.message, where=where + inner) from None
