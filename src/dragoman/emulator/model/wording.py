"""The model's texts: echoes, reports on tool results, and JSON if the request wants JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.arguments.fill import fill_value
from dragoman.emulator.model.builtin import Code
from dragoman.emulator.turn import Result, Tools, Turn

_QUOTE_CHARS = 600
#: The keys in which clients put a tool's output, in the order in which Google reads them.
_OUTPUT_KEYS = ("output", "result", "content")


def shorten(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def echo(turn: Turn) -> str:
    shown = f" I can see {', '.join(turn.media)}." if turn.media else ""
    said = shorten(turn.words, 160)
    heard = f"You said: {said}" if said else "You said nothing."
    return f"This is the offline Gemini emulator.{shown} {heard}"


def report(results: Sequence[Result]) -> str:
    """Return one line per result: the function, its output or error, and its media."""
    return "\n".join(_describe(result) for result in results)


def is_failure(result: Result) -> bool:
    return "error" in result.response and not any(key in result.response for key in _OUTPUT_KEYS)


def quote(result: Result) -> str:
    """Return the whole output of a function as text."""
    value = _output(result)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def say_result(code: Code) -> str:
    return f"The code printed {code.output.strip()}."


def missing_tools(names: Sequence[str], tools: Tools) -> str:
    declared = ", ".join(function.name for function in tools.declared) or "none"
    reason = "may not be called now" if _all_declared(names, tools) else "is not declared"
    verb = "".join(f"The tool {name} {reason}. " for name in names)
    return f"{verb}Declared tools: {declared}."


def write_json(config: Mapping[str, Any], turn: Turn, answer: str) -> str:
    """Return the answer, or an instance of the response schema if the request wants JSON."""
    wanted, schema = _response_shape(config)
    if wanted == "text/x.enum":
        return str(fill_value(schema or {}, turn.words))
    if wanted != "application/json" or _is_json(answer):
        return answer
    value = fill_value(schema, turn.words) if schema is not None else {"answer": answer}
    return msgspec.json.encode(value).decode()


def wanted_form(config: Mapping[str, Any]) -> str:
    """Return the mime type that the answer must have."""
    return _response_shape(config)[0] or "text/plain"


def _response_shape(config: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    for entry in config.get("responseFormat", ()):
        text = entry.get("text", {})
        if text.get("mimeType") == "APPLICATION_JSON":
            return "application/json", text.get("schema")
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return config.get("responseMimeType", "text/plain"), schema


def _is_json(answer: str) -> bool:
    try:
        msgspec.json.decode(answer.encode())
    except msgspec.DecodeError:
        return False
    return True


def _describe(result: Result) -> str:
    media = f" (with {', '.join(result.media)})" if result.media else ""
    verb = "failed" if is_failure(result) else "returned"
    return f"{result.name} {verb}{media}: {_show(quote(result))}"


def _output(result: Result) -> Any:
    keys = ("error",) if is_failure(result) else _OUTPUT_KEYS
    return next((result.response[key] for key in keys if key in result.response), result.response)


def _show(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _QUOTE_CHARS else text[: _QUOTE_CHARS - 1].rstrip() + "…"


def _all_declared(names: Sequence[str], tools: Tools) -> bool:
    declared = {function.name.lower() for function in tools.declared}
    return all(name.lower() in declared for name in names)
