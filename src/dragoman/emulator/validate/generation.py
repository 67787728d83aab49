"""Stage 3, first half: which features and limits a model supports. Raises the first violation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.emulator.errors import ApiError, catch_all_error
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.parsed_request import calling_config_of, declarations_of
from dragoman.emulator.routes import Backend
from dragoman.emulator.tokens import count_prompt
from dragoman.emulator.validate.fields import STOP_LIMIT, check_vertex_schema

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
