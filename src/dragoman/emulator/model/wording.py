"""The model's texts: echoes, reports on tool results, and JSON if the request wants JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.arguments.fill import fill_value
from dragoman.emulator.model.builtin import CodeExecution
from dragoman.emulator.turn import CurrentTurn, FunctionResult, RequestTools

_QUOTE_CHARS = 600
#: The keys in which clients put a tool's output, in the order in which Google reads them.
_OUTPUT_KEYS = ("output", "result", "content")


def shorten(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def echo_turn(turn: CurrentTurn) -> str:
    shown = f" I can see {', '.join(turn.media)}." if turn.media else ""
    said = shorten(turn.user_text, 160)
    heard = f"You said: {said}" if said else "You said nothing."
    return f"This is the offline Gemini emulator.{shown} {heard}"


def report_results(results: Sequence[FunctionResult]) -> str:
    """Return one line per result: the function, its output or error, and its media."""
    return "\n".join(_describe_result(result) for result in results)


def is_failure(result: FunctionResult) -> bool:
    return "error" in result.response and not any(key in result.response for key in _OUTPUT_KEYS)


def result_text(result: FunctionResult) -> str:
    """Return the whole output of a function as text."""
    value = _output_of(result)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def report_code_output(code: CodeExecution) -> str:
    return f"The code printed {code.output.strip()}."


def explain_missing_tools(names: Sequence[str], tools: RequestTools) -> str:
    declared = ", ".join(function.name for function in tools.declared_functions) or "none"
    reason = "may not be called now" if _all_declared(names, tools) else "is not declared"
    verb = "".join(f"The tool {name} {reason}. " for name in names)
    return f"{verb}Declared tools: {declared}."


def format_answer(config: Mapping[str, Any], turn: CurrentTurn, answer: str) -> str:
    """Return the answer, or an instance of the response schema if the request wants JSON."""
    wanted, schema = _response_shape(config)
    if wanted == "text/x.enum":
        return str(fill_value(schema or {}, turn.user_text))
    if wanted != "application/json" or _is_json(answer):
        return answer
    value = fill_value(schema, turn.user_text) if schema is not None else {"answer": answer}
    return msgspec.json.encode(value).decode()


def response_mime_type(config: Mapping[str, Any]) -> str:
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


def _describe_result(result: FunctionResult) -> str:
    media = f" (with {', '.join(result.media)})" if result.media else ""
    verb = "failed" if is_failure(result) else "returned"
    return f"{result.name} {verb}{media}: {_truncate(result_text(result))}"


def _output_of(result: FunctionResult) -> Any:
    keys = ("error",) if is_failure(result) else _OUTPUT_KEYS
    return next((result.response[key] for key in keys if key in result.response), result.response)


def _truncate(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _QUOTE_CHARS else text[: _QUOTE_CHARS - 1].rstrip() + "…"


def _all_declared(names: Sequence[str], tools: RequestTools) -> bool:
    declared = {function.name.lower() for function in tools.declared_functions}
    return all(name.lower() in declared for name in names)
