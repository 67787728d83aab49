"""`JsonScreen`: writes a turn as one JSON object per line, for scripts."""

from __future__ import annotations

from typing import Any, TextIO, assert_never

import msgspec

from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalQuestion,
    ShowCall,
    ShowCommand,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
    TurnEnd,
)
from dragoman.agent.limits import SessionUsage
from dragoman.ir import Text, ToolCall, ToolResult


class JsonScreen:
    """A screen for scripts; it refuses every call that needs approval."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, shown: ShowCommand) -> None:
        match shown:
            case ShowText():
                self._emit("text", text=shown.text)
            case ShowThought():
                self._emit("thought", text=shown.text)
            case ShowCall():
                self._emit("call", id=shown.call.id, name=shown.call.name, args=_json_args(shown.call))
            case ShowResult():
                self._emit(
                    "result",
                    id=shown.call.id,
                    name=shown.call.name,
                    is_error=shown.result.is_error,
                    seconds=round(shown.seconds, 3),
                    **_json_content(shown.result),
                )
            case ShowNotice():
                self._emit("remark", text=shown.text)
            case _:
                assert_never(shown)

    def progress(self, line: str) -> None:
        self._emit("progress", text=line)

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self._emit("refused", tool=question.tool, subject=question.subject, why="nobody can be asked")
        return "no"

    def begin(self, session: str, model: str) -> None:
        self._emit("start", session=session, model=model)

    def end(self, stop: TurnEnd, spent: SessionUsage, code: int) -> None:
        usage = {name: getattr(spent, name) for name in spent.__struct_fields__}
        self._emit("stop", reason=stop.reason, detail=stop.detail, exit_code=code, usage=usage)

    def _emit(self, kind: str, **fields: Any) -> None:
        self._out.write(msgspec.json.encode({"type": kind, **fields}).decode() + "\n")
        self._out.flush()


def _json_args(call: ToolCall) -> Any:
    try:
        return msgspec.json.decode(call.args)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return call.args.decode("utf-8", "replace")


def _json_content(result: ToolResult) -> dict[str, Any]:
    if result.response:
        return {"response": msgspec.Raw(result.response)}
    return {"text": "\n".join(part.text for part in result.content if isinstance(part, Text))}
