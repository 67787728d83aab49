"""Decode blocks of server tools in the history: calls and results that this gateway or another service produced."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.server_tools_out import PREFIX
from dragoman.dialects.anthropic.wire import Block
from dragoman.ir import SealedSignature, ServerCall, ServerKind, ServerResult, Source, unseal

Json = dict[str, Any]

#: Suffix of a tool name, or of a result type without `_tool_result` -> kind of tool.
_KINDS: dict[str, ServerKind] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
    "mcp": "mcp",
}


def read_call(block: Block, where: str) -> ServerCall | None:
    """Decode a call; None if the tool is unknown."""
    kind = _kind("mcp" if block.type == "mcp_tool_use" else block.name)
    if kind is None:
        return None
    args = jsontext.decode(msgspec.json.decode, bytes(block.input) or b"{}", f"{where}.input")
    return ServerCall(
        id=block.id.removeprefix(PREFIX),
        kind=kind,
        name=block.name,
        args=bytes(block.input) or b"{}" if isinstance(args, dict) else msgspec.json.encode({"input": args}),
        label=block.server_name,
    )


def read_result(block: Block, where: str) -> tuple[ServerResult, list[SealedSignature]] | None:
    """Decode a result and the sealed signatures in its `encrypted_content` fields; None if the tool is unknown."""
    kind = _kind(block.type.removesuffix("_tool_result"))
    if kind is None:
        return None
    content = jsontext.decode(msgspec.json.decode, bytes(block.content) or b"null", f"{where}.content")
    items = content if isinstance(content, list) else [content]
    known = [item for item in items if isinstance(item, dict)]
    result = ServerResult(
        call_id=block.tool_use_id.removeprefix(PREFIX),
        kind=kind,
        sources=tuple(source for item in known if (source := _source(item)) is not None),
        output="".join(map(_output, items)),
        error=_error(known, failed=bool(block.is_error)),
    )
    carried = (unseal(word) for item in known if isinstance(word := item.get("encrypted_content"), str))
    return result, [sealed for sealed in carried if sealed is not None]


def readable(value: object) -> str:
    """Return any JSON value as JSON text, without its encrypted fields."""

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if not str(key).startswith("encrypted")}
        return [plain(item) for item in value] if isinstance(value, list) else value

    try:
        return msgspec.json.encode(plain(value)).decode()
    except RecursionError:
        return "(nested too deeply to be shown)"


def _kind(word: str) -> ServerKind | None:
    return next((kind for end, kind in _KINDS.items() if word.endswith(end)), None)


def _source(item: Json) -> Source | None:
    url = item.get("url")
    if not isinstance(url, str):
        return None
    document = item.get("content")
    inside = document if isinstance(document, dict) else {}
    source = inside.get("source")
    text = source.get("data") if isinstance(source, dict) and source.get("type") == "text" else ""
    title = item.get("title") or inside.get("title")
    return Source(url=url, title=_word(title), text=_word(text))


def _output(item: Any) -> str:
    """Return the text of an item of a result; unknown items as JSON."""
    if item is None or isinstance(item, str):
        return item or ""
    if not isinstance(item, dict):
        return readable(item)
    if _source(item) is not None or "error_code" in item:
        return ""
    said = [item[field] for field in ("stdout", "stderr", "text") if field in item]
    return "".join(map(_word, said)) if said else readable(item)


def _error(items: list[Json], *, failed: bool) -> str:
    found = next((_word(item.get("error_code")) for item in items if item.get("error_code")), "")
    failed = failed or any(item.get("return_code") for item in items)
    return found or ("failed" if failed else "")


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
