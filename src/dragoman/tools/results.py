"""What a tool returned, as the neutral result of its call: normalised, capped, readable as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from dragoman.ir import Media, Text, ToolCall, ToolResult
from dragoman.tools.definition import ToolOutput

MAX_MEDIA_BYTES = 15 * 1024 * 1024  # base64 of one result; Google takes 20 MB inline in a whole request
_ENCODER_SORTED = msgspec.json.Encoder(order="sorted")


def to_output(value: Any) -> ToolOutput:
    """Text stays text; everything else becomes a JSON object, below `output` if it is none itself."""
    match value:
        case ToolOutput():
            return value
        case None:
            return ToolOutput()
        case str():
            return ToolOutput(content=(Text(text=_whole(value)),))
        case Text() | Media():
            return ToolOutput(content=(value,))
        case list() | tuple() if value and all(isinstance(one, Text | Media) for one in value):
            return ToolOutput(content=tuple(value))
        case _:
            return ToolOutput(response=_object(value))


def error_output(message: str) -> ToolOutput:
    return ToolOutput(content=(Text(text=_whole(message)),), is_error=True)


def to_result(output: ToolOutput, call: ToolCall) -> ToolResult:
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=output.content,
        response=output.response,
        is_error=output.is_error,
    )


def result_text(result: ToolResult | ToolOutput) -> str:
    """A result for people, and for APIs that take text only."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.response:
        return text
    value = msgspec.json.decode(result.response, type=dict[str, msgspec.Raw])
    said = bytes(value["output"]) if value.keys() == {"output"} else result.response
    plain = msgspec.json.decode(said, type=str) if said.startswith(b'"') else said.decode()
    return f"{text}\n{plain}" if text else plain


def size_of(output: ToolOutput) -> int:
    """The bytes of a result as they weigh on a conversation."""
    return len(output.response) + sum(map(_weigh, output.content))


def cap_output(output: ToolOutput, max_bytes: int) -> ToolOutput:
    """The same, or the beginning of it with a note that says how much is missing."""
    content = _fitting_media(output.content)
    texts = [part for part in content if isinstance(part, Text)]
    total = len(output.response) + sum(map(_weigh, texts))
    if total <= max_bytes:
        return msgspec.structs.replace(output, content=content)
    # Half a JSON document is no document: it is shown as the text it is.
    whole = result_text(msgspec.structs.replace(output, content=tuple(texts)))
    kept = whole.encode()[:max_bytes].decode("utf-8", "ignore")
    total = len(whole.encode())
    note = f"\n[output cut: the first {len(kept.encode())} of {total} bytes are shown; ask for less at once]"
    media = tuple(part for part in content if isinstance(part, Media))
    return ToolOutput(content=(Text(text=kept + note), *media), is_error=output.is_error)


def canonical(args: Any) -> bytes:
    """The same bytes for the same arguments, whatever their order."""
    return _ENCODER_SORTED.encode(args)


def plain_value(value: Any) -> Any:
    """What msgspec does not know: pydantic's models, and paths."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a tool cannot return {type(value).__name__}: return text or what JSON can say")


def _fitting_media(content: Sequence[Text | Media]) -> tuple[Text | Media, ...]:
    fitting: list[Text | Media] = []
    left = MAX_MEDIA_BYTES
    for part in content:
        size = len(part.data) if isinstance(part, Media) else 0
        if size > left:
            fitting.append(Text(text=f"[a file of {size} bytes was left out: too large to send]"))
        else:
            left -= size
            fitting.append(part)
    return tuple(fitting)


def _weigh(part: Text | Media) -> int:
    return len(part.data) + len(part.uri) if isinstance(part, Media) else len(part.text.encode())


def _object(value: Any) -> bytes:
    plain = _encode(value)
    return plain if plain.startswith(b"{") else b'{"output":%b}' % plain


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=plain_value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole_values(msgspec.to_builtins(value, enc_hook=plain_value)))


def _whole(text: str) -> str:
    """Half a surrogate pair is no text and would fail the whole request."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _whole_values(value: Any) -> Any:
    match value:
        case str():
            return _whole(value)
        case dict():
            return {_whole_values(key): _whole_values(one) for key, one in value.items()}
        case list():
            return [_whole_values(one) for one in value]
    return value
