"""Turn what an executor returned into a `ToolResult`: normalise it, limit its size, render it as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from dragoman.ir import Media, Text, ToolCall, ToolResult
from dragoman.tools.definition import ToolOutput

# Base64 per result. Google accepts 20 MB of inline data in a whole request.
MAX_MEDIA_BYTES = 15 * 1024 * 1024
_ENCODER_SORTED = msgspec.json.Encoder(order="sorted")


def to_output(value: Any) -> ToolOutput:
    """Convert an executor's return value.

    Text and files become `content`. Any other value becomes a JSON object in `response`; a value that is no
    object is wrapped as `{"output": value}`. Raises `TypeError` for a value that JSON cannot represent.
    """
    match value:
        case ToolOutput():
            return value
        case None:
            return ToolOutput()
        case str():
            return ToolOutput(content=(Text(text=_without_surrogates(value)),))
        case Text() | Media():
            return ToolOutput(content=(value,))
        case list() | tuple() if value and all(isinstance(one, Text | Media) for one in value):
            return ToolOutput(content=tuple(value))
        case _:
            return ToolOutput(response=_object(value))


def error_output(message: str) -> ToolOutput:
    return ToolOutput(content=(Text(text=_without_surrogates(message)),), is_error=True)


def to_result(output: ToolOutput, call: ToolCall) -> ToolResult:
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=output.content,
        response=output.response,
        is_error=output.is_error,
    )


def result_text(result: ToolResult | ToolOutput) -> str:
    """Render a result as text, for people and for APIs that accept only text; files are left out."""
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.response:
        return text
    value = msgspec.json.decode(result.response, type=dict[str, msgspec.Raw])
    said = bytes(value["output"]) if value.keys() == {"output"} else result.response
    plain = msgspec.json.decode(said, type=str) if said.startswith(b'"') else said.decode()
    return f"{text}\n{plain}" if text else plain


def size_of(output: ToolOutput) -> int:
    """Return the size of a result in bytes: its JSON, text, base64 data and URIs."""
    return len(output.response) + sum(map(_part_size, output.content))


def cap_output(output: ToolOutput, max_bytes: int) -> ToolOutput:
    """Limit a result to `max_bytes` of text or JSON, with a note that says how much is missing.

    Files count against `MAX_MEDIA_BYTES` instead; a file that does not fit is replaced by a note.
    """
    content = _fitting_media(output.content)
    texts = [part for part in content if isinstance(part, Text)]
    total = len(output.response) + sum(map(_part_size, texts))
    if total <= max_bytes:
        return msgspec.structs.replace(output, content=content)
    # A truncated JSON document is no longer valid JSON, so it becomes text.
    whole = result_text(msgspec.structs.replace(output, content=tuple(texts)))
    head = whole.encode()[:max_bytes].decode("utf-8", "ignore")
    total = len(whole.encode())
    note = f"\n[output cut: the first {len(head.encode())} of {total} bytes are shown; ask for less at once]"
    media = tuple(part for part in content if isinstance(part, Media))
    return ToolOutput(content=(Text(text=head + note), *media), is_error=output.is_error)


def canonical(args: Any) -> bytes:
    """Encode arguments as JSON with sorted keys, so that equal arguments give equal bytes."""
    return _ENCODER_SORTED.encode(args)


def plain_value(value: Any) -> Any:
    """Encode types that msgspec does not know: pydantic models and paths. Raise `TypeError` for any other."""
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


def _part_size(part: Text | Media) -> int:
    return len(part.data) + len(part.uri) if isinstance(part, Media) else len(part.text.encode())


def _object(value: Any) -> bytes:
    plain = _encode(value)
    return plain if plain.startswith(b"{") else b'{"output":%b}' % plain


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=plain_value)
    except UnicodeEncodeError:
        return msgspec.json.encode(
            _values_without_surrogates(msgspec.to_builtins(value, enc_hook=plain_value))
        )


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded as UTF-8 and would fail the whole request."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _values_without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return _without_surrogates(value)
        case dict():
            return {
                _values_without_surrogates(key): _values_without_surrogates(one) for key, one in value.items()
            }
        case list():
            return [_values_without_surrogates(one) for one in value]
    return value
