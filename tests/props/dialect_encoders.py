"""How each client dialect says one and the same conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.props.conversation_strategies import IMAGE, Call, Result, Step, Talk
from tests.unit.dialects.anthropic.strategies import PIXEL

Json = dict[str, Any]

#: Why a dialect is left out of a comparison. Amazon Q has one text with pictures behind it, no choice of tools, and
#: sorts them; Chat's results cannot fail; Responses has no stop sequences; a Gemini
#: client says its own thinking and output in its model's words, and has no remarks and no switch for single calls.
LACKS: dict[str, set[str]] = {
    "anthropic": set(),
    "openai_chat": {"errors"},
    "openai_responses": {"stop"},
    "gemini": {"remarks", "one_call", "effort", "output"},
    "amazonq": {"remarks", "one_call", "output", "choice", "systems", "tool_order", "mixed", "pictures"},
    "bedrock": set(),
}


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


def amazonq(talk: Talk) -> Json:
    def user(words: list[str], **context: Any) -> Json:
        said = [word for word in words if word != IMAGE]
        pictures = [{"format": "png", "source": {"bytes": PIXEL}} for word in words if word == IMAGE]
        about = {"userInputMessageContext": context} if context else {}
        return {"userInputMessage": {"content": "".join(said), **about, **_said_given(images=pictures)}}

    def result(item: Result) -> Json:
        return {
            "toolUseId": f"tooluse_{item.call.number:024d}",
            "content": [{"text": item.words}],
            "status": "error" if item.failed else "success",
        }

    def step(item: Step) -> Iterator[Json]:
        uses = [
            {"toolUseId": f"tooluse_{call.number:024d}", "name": call.name, "input": call.args}
            for call in item.calls
        ]
        yield {"assistantResponseMessage": {"content": item.said, "toolUses": uses}}
        pictures = [IMAGE for answer in item.results if answer.has_image]
        yield user(pictures, toolResults=[result(answer) for answer in item.results])

    messages: list[Json] = []
    for item in talk.rounds:
        messages.append(user(item.asked))
        messages += [message for piece in item.steps for message in step(piece)]
        messages += [{"assistantResponseMessage": {"content": item.answer}}] if item.answer else []
    current = messages.pop()["userInputMessage"]
    specifications = [
        {
            "toolSpecification": {
                "name": name,
                "inputSchema": {"json": schema},
                **_said_given(description=words),
            }
        }
        for name, words, schema in talk.tools
    ]
    current["userInputMessageContext"] = {
        **current.get("userInputMessageContext", {}),
        "tools": specifications[::-1],
    }
    return {
        "conversationState": {"history": messages, "currentMessage": {"userInputMessage": current}},
        **_said_given(systemPrompt="".join(talk.system)),
        "additionalModelRequestFields": {
            "max_tokens": talk.max_tokens,
            **_said_given(
                temperature=talk.temperature,
                stop_sequences=talk.stop,
                thinking={"type": "adaptive"} if talk.effort else None,
                output_config=_said_given(effort=talk.effort),
            ),
        },
    }


def bedrock(talk: Talk) -> Json:
    def block(words: str) -> Json:
        if words == IMAGE:
            return {"image": {"format": "png", "source": {"bytes": PIXEL}}}
        return {"text": words}

    def result(item: Result) -> Json:
        content = [block(item.words), *([block(IMAGE)] if item.has_image else [])]
        status = {"status": "error"} if item.failed else {}
        return {"toolResult": {"toolUseId": f"tooluse_{item.call.number:024d}", "content": content, **status}}

    def step(item: Step) -> Iterator[Json]:
        calls = [
            {"toolUse": {"toolUseId": f"tooluse_{call.number:024d}", "name": call.name, "input": call.args}}
            for call in item.calls
        ]
        yield {"role": "assistant", "content": [*([block(item.said)] if item.said else []), *calls]}
        yield {"role": "user", "content": [result(answer) for answer in item.results]}
        if item.remark:
            yield {"role": "system", "content": [block(item.remark)]}

    messages: list[Json] = []
    for item in talk.rounds:
        messages.append({"role": "user", "content": [block(words) for words in item.asked]})
        messages += [message for piece in item.steps for message in step(piece)]
        messages += [{"role": "assistant", "content": [block(item.answer)]}] if item.answer else []
    # Converse has no words for single calls and for none; Claude's are taken beside it.
    beside = _said_given(
        type="none" if talk.choice == "none" else None,
        disable_parallel_tool_use=True if talk.one_call else None,
    )
    choice: Any = {"none": None}.get(talk.choice, {talk.choice: {}})
    if talk.choice.startswith("="):
        choice = {"tool": {"name": talk.choice[1:]}}
    specs = [
        {"toolSpec": {"name": name, "inputSchema": {"json": schema}, **_said_given(description=words)}}
        for name, words, schema in talk.tools
    ]
    wanted = {"schema": _compact(talk.output), "name": "answer"}
    text_format = {"type": "json_schema", "structure": {"jsonSchema": wanted}}
    return {
        "messages": messages,
        "inferenceConfig": {
            "maxTokens": talk.max_tokens,
            **_said_given(temperature=talk.temperature, stopSequences=talk.stop),
        },
        **_said_given(
            system=[block(words) for words in talk.system],
            toolConfig={"tools": specs, **_said_given(toolChoice=choice)} if specs else None,
            outputConfig=_said_given(
                effort=talk.effort, textFormat=text_format if talk.output is not None else None
            ),
            additionalModelRequestFields=_said_given(
                thinking={"type": "adaptive"} if talk.effort else None,
                tool_choice=beside if specs else None,
            ),
        ),
    }


TONGUES: dict[str, Callable[[Talk], Json]] = {
    "anthropic": anthropic,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
    "amazonq": amazonq,
    "bedrock": bedrock,
}


def speak(tongue: str, talk: Talk) -> bytes:
    return _compact(TONGUES[tongue](talk)).encode()
