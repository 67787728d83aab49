"""One neutral conversation, invented by Hypothesis, and how each client dialect says it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.unit.dialects.anthropic.inventing import ARGS, NAMES, PIXEL

Json = dict[str, Any]

IMAGE = "\0image"  # stands for a picture among the words of a user or a tool

SAID = st.one_of(
    st.sampled_from(["hello", "ünï\u2028cödé", '{"a": 1}', "line\nline", "  spaces  "]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
).filter(lambda words: bool(words.strip()))
#: Schemas that Gemini takes as they are: a Gemini client's are not cleaned, everybody else's are.
SCHEMAS: list[Json] = [
    {"type": "object", "properties": {"pattern": {"type": "string"}, "n": {"type": "integer"}}},
    {
        "type": "object",
        "properties": {"x": {"type": "array", "items": {"type": "string"}}},
        "required": ["x"],
    },
]


class Call(msgspec.Struct, frozen=True):
    number: int
    name: str
    args: Json


class Result(msgspec.Struct, frozen=True):
    call: Call
    words: str
    has_image: bool
    failed: bool


class Step(msgspec.Struct, frozen=True):
    """The model speaks and calls; the tools answer, in any order; the program remarks."""

    said: str
    calls: list[Call]
    results: list[Result]
    remark: str


class Round(msgspec.Struct, frozen=True):
    """The user asks; an answer is missing where the user spoke again before it came."""

    asked: list[str]
    steps: list[Step]
    answer: str


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    system: list[str]
    rounds: list[Round]
    tools: list[tuple[str, str, Json]]  # name, description, schema
    choice: str  # auto, any, none, or =NAME
    one_call: bool
    max_tokens: int
    temperature: float | None
    stop: list[str]
    effort: str
    output: Json | None
    call_ids: bool  # said or not where a dialect can do without
    nested: bool  # which of two forms where a dialect has two

    @property
    def needs(self) -> set[str]:
        """What not every dialect can say."""
        steps = [step for item in self.rounds for step in item.steps]
        found = {
            "errors": any(result.failed for step in steps for result in step.results),
            "remarks": any(step.remark for step in steps),
            "one_call": self.one_call,
            "stop": bool(self.stop),
            "effort": bool(self.effort),
            "output": self.output is not None,
        }
        return {name for name, wanted in found.items() if wanted}


#: Why a dialect is left out of a comparison. Chat's results cannot fail; Responses has no stop sequences; a Gemini
#: client says its own thinking and output in its model's words, and has no remarks and no switch for single calls.
LACKS: dict[str, set[str]] = {
    "anthropic": set(),
    "openai_chat": {"errors"},
    "openai_responses": {"stop"},
    "gemini": {"remarks", "one_call", "effort", "output"},
}
_WISHES = [
    *(frozenset[str]() for _ in range(3)),
    *(frozenset({wish}) for wish in ("errors", "remarks", "one_call", "stop", "effort", "output")),
    frozenset({"errors", "stop"}),
    frozenset({"remarks", "one_call", "effort", "output"}),
]


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    wishes = draw(st.sampled_from(_WISHES))
    tools = draw(
        st.lists(st.tuples(NAMES, SAID | st.just(""), st.sampled_from(SCHEMAS)), max_size=3, unique_by=_name)
    )
    call_ids = draw(st.booleans())
    numbers = itertools.count(1)
    rounds = [draw(_round(wishes, tools, numbers, call_ids)) for _ in range(draw(st.integers(1, 3)))]
    rounds[-1] = msgspec.structs.replace(rounds[-1], answer="")
    choices = ["auto", "any", "none", *(f"={name}" for name, _, _ in tools)]
    return Talk(
        system=draw(st.lists(SAID, max_size=2)),
        rounds=rounds,
        tools=tools,
        choice=draw(st.sampled_from(choices)) if tools else "auto",
        one_call="one_call" in wishes and bool(tools),
        max_tokens=draw(st.integers(4096, 70_000)),  # below, all but Gemini's own clients get less thinking
        temperature=draw(st.none() | st.floats(0, 1)),
        stop=draw(st.lists(SAID, min_size=1, max_size=6)) if "stop" in wishes else [],
        effort=draw(st.sampled_from(["low", "medium", "high"])) if "effort" in wishes else "",
        output=draw(st.sampled_from(SCHEMAS)) if "output" in wishes else None,
        call_ids=call_ids,
        nested=draw(st.booleans()),
    )


def _name(tool: tuple[str, str, Json]) -> str:
    return tool[0]


@st.composite
def _round(draw: st.DrawFn, wishes: frozenset[str], tools: list[Any], numbers: Any, shuffled: bool) -> Round:
    steps = [draw(_step(wishes, tools, numbers, shuffled)) for _ in range(draw(st.integers(0, 2)))]
    return Round(
        draw(st.lists(SAID | st.just(IMAGE), min_size=1, max_size=3)), steps, draw(SAID | st.just(""))
    )


@st.composite
def _step(draw: st.DrawFn, wishes: frozenset[str], tools: list[Any], numbers: Any, shuffled: bool) -> Step:
    names = st.sampled_from([name for name, _, _ in tools]) | NAMES if tools else NAMES
    calls = [Call(next(numbers), draw(names), draw(ARGS)) for _ in range(draw(st.integers(1, 3)))]
    failed = st.booleans() if "errors" in wishes else st.just(False)
    # Without ids only the order tells which result is whose.
    order = draw(st.permutations(calls)) if shuffled else calls
    results = [Result(call, draw(SAID | st.just("")), draw(st.booleans()), draw(failed)) for call in order]
    return Step(draw(SAID | st.just("")), calls, results, draw(SAID) if "remarks" in wishes else "")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _image_url() -> str:
    return f"data:image/png;base64,{PIXEL}"


def _said_given(**fields: Any) -> Json:
    """Only what was said at all."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def anthropic(talk: Talk) -> Json:
    def block(words: str) -> Json:
        if words == IMAGE:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            return {"type": "image", "source": source}
        return {"type": "text", "text": words}

    def result(item: Result) -> Json:
        content: Any = [block(item.words), block(IMAGE)] if item.has_image else item.words
        base = {"type": "tool_result", "tool_use_id": f"toolu_{item.call.number:024d}", "content": content}
        return {**base, "is_error": True} if item.failed else base

    def step(item: Step) -> Iterator[Json]:
        calls = [
            {"type": "tool_use", "id": f"toolu_{call.number:024d}", "name": call.name, "input": call.args}
            for call in item.calls
        ]
        yield {"role": "assistant", "content": [*([block(item.said)] if item.said else []), *calls]}
        yield {"role": "user", "content": [result(answer) for answer in item.results]}
        if item.remark:
            yield {"role": "system", "content": item.remark}

    messages: list[Json] = []
    for item in talk.rounds:
        messages.append({"role": "user", "content": [block(words) for words in item.asked]})
        messages += [message for part in item.steps for message in step(part)]
        messages += [{"role": "assistant", "content": item.answer}] if item.answer else []
    choice: Json = {"type": talk.choice}
    if talk.choice.startswith("="):
        choice = {"type": "tool", "name": talk.choice[1:]}
    if talk.one_call:
        choice["disable_parallel_tool_use"] = True
    wanted = {"type": "json_schema", "schema": talk.output} if talk.output is not None else None
    return {
        "model": "m",
        "max_tokens": talk.max_tokens,
        "messages": messages,
        **_said_given(
            system=[block(words) for words in talk.system],
            tools=[
                {"name": name, "input_schema": schema, **_said_given(description=words)}
                for name, words, schema in talk.tools
            ],
            tool_choice=choice if talk.tools else None,
            temperature=talk.temperature,
            stop_sequences=talk.stop,
            thinking={"type": "adaptive"} if talk.effort else None,
            output_config=_said_given(effort=talk.effort, format=wanted),
        ),
    }


def openai_chat(talk: Talk) -> Json:
    def part(words: str) -> Json:
        if words == IMAGE:
            return {"type": "image_url", "image_url": {"url": _image_url()}}
        return {"type": "text", "text": words}

    def step(item: Step) -> Iterator[Json]:
        calls = [
            {
                "id": f"call_{call.number:024d}",
                "type": "function",
                "function": {"name": call.name, "arguments": _compact(call.args)},
            }
            for call in item.calls
        ]
        yield {"role": "assistant", "content": item.said or None, "tool_calls": calls}
        for answer in item.results:
            content: Any = [part(answer.words), part(IMAGE)] if answer.has_image else answer.words
            yield {"role": "tool", "tool_call_id": f"call_{answer.call.number:024d}", "content": content}
        if item.remark:
            yield {"role": "developer", "content": item.remark}

    messages: list[Json] = [{"role": "system", "content": words} for words in talk.system]
    for item in talk.rounds:
        messages.append({"role": "user", "content": [part(words) for words in item.asked]})
        messages += [message for piece in item.steps for message in step(piece)]
        messages += [{"role": "assistant", "content": item.answer}] if item.answer else []
    choice: Any = {"any": "required"}.get(talk.choice, talk.choice)
    if talk.choice.startswith("="):
        choice = {"type": "function", "function": {"name": talk.choice[1:]}}
    wanted = {"name": "answer", "schema": talk.output}
    return {
        "model": "m",
        "messages": messages,
        "max_completion_tokens": talk.max_tokens,
        **_said_given(
            tools=[
                {
                    "type": "function",
                    "function": {"name": name, "parameters": schema, **_said_given(description=words)},
                }
                for name, words, schema in talk.tools
            ],
            tool_choice=choice if talk.tools else None,
            parallel_tool_calls=False if talk.one_call else None,
            temperature=talk.temperature,
            stop=talk.stop,
            reasoning_effort=talk.effort,
            response_format={"type": "json_schema", "json_schema": wanted}
            if talk.output is not None
            else None,
        ),
    }


def openai_responses(talk: Talk) -> Json:
    def part(words: str) -> Json:
        if words == IMAGE:
            return {"type": "input_image", "image_url": _image_url()}
        return {"type": "input_text", "text": words}

    def step(item: Step) -> Iterator[Json]:
        if item.said:
            yield {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": item.said}],
            }
        for call in item.calls:
            identity = f"call_{call.number:024d}"
            args = _compact(call.args)
            yield {"type": "function_call", "call_id": identity, "name": call.name, "arguments": args}
        for answer in item.results:
            output: Any = [part(answer.words), part(IMAGE)] if answer.has_image else answer.words
            base = {"type": "function_call_output", "call_id": f"call_{answer.call.number:024d}"}
            yield {**base, "output": output, "status": "failed" if answer.failed else "completed"}
        if item.remark:
            yield {"role": "developer", "content": item.remark}

    items: list[Json] = [{"role": "developer", "content": words} for words in talk.system[1:]]
    for item in talk.rounds:
        items.append({"role": "user", "content": [part(words) for words in item.asked]})
        items += [entry for piece in item.steps for entry in step(piece)]
        items += [{"role": "assistant", "content": item.answer}] if item.answer else []
    choice: Any = {"any": "required"}.get(talk.choice, talk.choice)
    if talk.choice.startswith("="):
        choice = {"type": "function", "name": talk.choice[1:]}
    functions = [
        {"name": name, "parameters": schema, **_said_given(description=words)}
        for name, words, schema in talk.tools
    ]
    wanted = {"type": "json_schema", "name": "answer", "schema": talk.output}
    return {
        "model": "m",
        "input": items,
        "max_output_tokens": talk.max_tokens,
        **_said_given(
            instructions=talk.system[0] if talk.system else None,
            tools=[
                {"type": "function", "function": function}
                if talk.nested
                else {"type": "function", **function}
                for function in functions
            ],
            tool_choice=choice if talk.tools else None,
            parallel_tool_calls=False if talk.one_call else None,
            temperature=talk.temperature,
            reasoning={"effort": talk.effort, "summary": "auto"} if talk.effort else None,
            text={"format": wanted} if talk.output is not None else None,
        ),
    }


def gemini(talk: Talk) -> Json:
    inline = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}

    def part(words: str) -> Json:
        return inline if words == IMAGE else {"text": words}

    def identity(call: Call) -> Json:
        return {"id": f"g{call.number:07d}"} if talk.call_ids else {}

    def response(item: Result) -> Json:
        # A Gemini client words the response itself; these are the words we find for the others.
        words = item.words or ("1 file(s) attached." if item.has_image else "")
        found = {"name": item.call.name, "response": {"error" if item.failed else "output": words}}
        return {**identity(item.call), **found, **({"parts": [inline]} if item.has_image else {})}

    def step(item: Step) -> Iterator[Json]:
        calls = [
            {"functionCall": {**identity(call), "name": call.name, "args": call.args}} for call in item.calls
        ]
        yield {"role": "model", "parts": [*([{"text": item.said}] if item.said else []), *calls]}
        yield {"role": "user", "parts": [{"functionResponse": response(answer)} for answer in item.results]}

    contents: list[Json] = []
    for item in talk.rounds:
        contents.append({"role": "user", "parts": [part(words) for words in item.asked]})
        contents += [content for piece in item.steps for content in step(piece)]
        contents += [{"role": "model", "parts": [{"text": item.answer}]}] if item.answer else []
    mode: Json = {"mode": talk.choice.upper()}
    if talk.choice.startswith("="):
        mode = {"mode": "ANY", "allowedFunctionNames": [talk.choice[1:]]}
    declarations = [
        {"name": name, **_said_given(description=words), "parametersJsonSchema": schema}
        for name, words, schema in talk.tools
    ]
    return {
        "contents": contents,
        **_said_given(
            systemInstruction={"parts": [{"text": words} for words in talk.system]} if talk.system else None,
            tools=[{"functionDeclarations": declarations}] if declarations else None,
            toolConfig={"functionCallingConfig": mode} if declarations else None,
            generationConfig={
                "maxOutputTokens": talk.max_tokens,
                **_said_given(temperature=talk.temperature, stopSequences=talk.stop),
            },
        ),
    }


TONGUES: dict[str, Callable[[Talk], Json]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
}


def speak(tongue: str, talk: Talk) -> bytes:
    return _compact(TONGUES[tongue](talk)).encode()
