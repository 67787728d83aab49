"""The deterministic model: it reads the conversation, calls the declared tools, and reports their results.

`generate_reply` chooses the next step for a request. The same request always gets the same reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.model.arguments import fill_arguments, fill_value
from dragoman.emulator.model.builtin_tools import CodeExecution, asks_for_search, find_urls, write_code
from dragoman.emulator.model.directives import DirectivePlan, DirectiveStep, read_directives
from dragoman.emulator.model.intents import read_intents
from dragoman.emulator.model.tool_selection import find_by_name, rank_functions
from dragoman.emulator.parsed_request import CurrentTurn, FunctionResult, RequestTools, read_tools, read_turn

_QUOTE_CHARS = 600
#: The keys in which clients put a tool's output, in the order in which Google reads them.
_OUTPUT_KEYS = ("output", "result", "content")


def shorten(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def echo_turn(turn: CurrentTurn) -> str:
    shown = f" I can see {', '.join(turn.media)}." if turn.media else ""
    user_text = shorten(turn.user_text, 160)
    quoted = f"You said: {user_text}" if user_text else "You said nothing."
    return f"This is the offline Gemini emulator.{shown} {quoted}"


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


def format_answer(config: Mapping[str, Any], turn: CurrentTurn, reply_text: str) -> str:
    """Return the answer, or an instance of the response schema if the request wants JSON."""
    wanted, schema = _response_shape(config)
    if wanted == "text/x.enum":
        return str(fill_value(schema or {}, turn.user_text))
    if wanted != "application/json" or _is_json(reply_text):
        return reply_text
    value = fill_value(schema, turn.user_text) if schema is not None else {"answer": reply_text}
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


def _is_json(reply_text: str) -> bool:
    try:
        msgspec.json.decode(reply_text.encode())
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


#: Clients declare their tools even when they only ask for a summary.
_FORBIDS_TOOLS = re.compile(r"\bdo not (?:call|use) any tools\b", re.IGNORECASE)


class ModelCall(msgspec.Struct, frozen=True):
    """A function call."""

    name: str
    args: Mapping[str, Any]


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the model: a thought, results of Google's own tools, text, and calls, in this order.

    `search` is the search query, `urls` are the pages that were read, `code` is the program that was run, and
    `cites` are the cited sources.
    """

    thought: str
    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    search_query: str = ""
    urls: tuple[str, ...] = ()
    code: CodeExecution | None = None
    cited_urls: tuple[str, ...] = ()


def generate_reply(request: Mapping[str, Any]) -> ModelReply:
    """Return the model's reply to a valid request; the same request always gets the same reply."""
    turn = read_turn(request.get("contents", ()))
    tools = read_tools(request)
    plan = read_directives(turn.user_text)
    thought = plan.think or f"**Considering the request**\n\nThe user wrote: {shorten(turn.user_text, 120)}"
    calls, text = _choose_calls(turn, tools, plan)
    if tools.call_required and not calls:
        calls = (_forced_call(turn, tools),)
    looked = _use_google_tools(turn, tools, answering=not calls)
    if calls:
        return msgspec.structs.replace(looked, thought=thought, text=text, calls=calls)
    text = _write_text(request, turn, plan, text, looked.code)
    return msgspec.structs.replace(looked, thought=thought, text=text, cited_urls=plan.cited_urls)


def _use_google_tools(turn: CurrentTurn, tools: RequestTools, *, answering: bool) -> ModelReply:
    """Use Google's own tools, at most once per turn.

    They run before function calls, and a search runs next to declared functions, only if the text asks for
    it.
    """
    user_text = turn.user_text
    wants_search = asks_for_search(user_text)
    if turn.used_builtin_tool or turn.results or not (answering or wants_search):
        return ModelReply(thought="")
    return ModelReply(
        thought="",
        search_query=shorten(user_text, 120)
        if tools.google_search and (wants_search or not tools.declared_functions)
        else "",
        urls=find_urls(user_text) if tools.url_context else (),
        code=write_code(user_text) if tools.code_execution and answering else None,
    )


def _choose_calls(
    turn: CurrentTurn, tools: RequestTools, plan: DirectivePlan
) -> tuple[tuple[ModelCall, ...], str]:
    """Return the calls of the next step, and the text before them or the reason why there are none."""
    if plan.steps:
        if turn.finished_steps < len(plan.steps):
            return _follow_directives(plan.steps[turn.finished_steps], tools)
        return (), ""
    if plan.say is not None or not turn.user_text.strip() or _FORBIDS_TOOLS.search(turn.user_text):
        return (), ""
    return _next_calls(turn, tools), ""


def _next_calls(turn: CurrentTurn, tools: RequestTools) -> tuple[ModelCall, ...]:
    """Return the next calls that the prose asks for; a failed result ends the plan."""
    steps = read_intents(turn.user_text, tools.callable_functions)
    if turn.finished_steps >= len(steps) or any(map(is_failure, turn.results)):
        return ()
    earlier = "\n".join(map(result_text, turn.last_results)) if turn.last_results else None
    filled = [(wish.function.name, wish.arguments(earlier)) for wish in steps[turn.finished_steps]]
    return tuple(ModelCall(name, args) for name, args in filled if args is not None)


def _follow_directives(step: DirectiveStep, tools: RequestTools) -> tuple[tuple[ModelCall, ...], str]:
    found = [(use, find_by_name(use.name, tools.callable_functions)) for use in step.calls]
    calls = tuple(ModelCall(function.name, use.args) for use, function in found if function is not None)
    absent = [use.name for use, function in found if function is None]
    lines = [step.text, explain_missing_tools(absent, tools) if absent else ""]
    return calls, "\n".join(line for line in lines if line)


def _forced_call(turn: CurrentTurn, tools: RequestTools) -> ModelCall:
    function = rank_functions(turn.user_text, tools.callable_functions)[0][1]
    return ModelCall(function.name, fill_arguments(function.schema, turn.user_text))


def _write_text(
    request: Mapping[str, Any],
    turn: CurrentTurn,
    plan: DirectivePlan,
    explanation: str,
    code: CodeExecution | None,
) -> str:
    config = request.get("generationConfig", {})
    reply_text = explanation or plan.say
    if reply_text is None:
        default = report_code_output(code) if code is not None else echo_turn(turn)
        reply_text = report_results(turn.results) if turn.results else default
    return format_answer(config, turn, reply_text)
