"""The screens, which show a turn as it happens: for a terminal, for plain text and for scripts (JSON lines).

`TerminalScreen` also asks for approval. `PlainScreen` writes the model's answer on one stream and everything else
on another; `JsonScreen` writes one JSON object per line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TextIO, assert_never

import msgspec

from dragoman import ir
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
from dragoman.agent.tui.markdown import Markdown
from dragoman.agent.tui.style import TerminalStyle, escape_controls, shorten
from dragoman.ir import Text, ToolCall, ToolResult

MAX_PREVIEW_LINES = 60
_DIFF_COLOURS = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


def paint_preview(preview: str, style: TerminalStyle, max_lines: int = MAX_PREVIEW_LINES) -> str:
    """Colour a unified diff or any other text; lines in the middle are left out if there are too many."""
    lines = escape_controls(preview).splitlines()
    if len(lines) > max_lines:
        half = max_lines // 2
        left_out = len(lines) - 2 * half
        lines = [*lines[:half], f"… {left_out} more lines …", *lines[-half:]]
    return "\n".join(f"  {_paint_line(line, style)}" for line in lines)


def _paint_line(line: str, style: TerminalStyle) -> str:
    if line.startswith(("+++", "---")):
        return style.paint(line, "bold")
    return style.paint(line, *_DIFF_COLOURS.get(line[:1], ()))


_TICK_S = 0.2
_CLEAR = "\r\x1b[2K"
_ANSWERS: dict[str, ApprovalAnswer] = {
    "y": "once",
    "yes": "once",
    "n": "no",
    "no": "no",
    "a": "always",
    "always": "always",
    "v": "never",
    "never": "never",
}
_CHOICES = "[y]es  [n]o  [a]lways  ne[v]er"


class TerminalScreen:
    """A screen for terminals; `read` prompts the person for a line. Without it every question is answered `no`."""

    def __init__(
        self,
        style: TerminalStyle,
        out: TextIO,
        read: Callable[[str], Awaitable[str]] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._style = style
        self._out = out
        self._read = read
        self._clock = clock
        self._markdown = Markdown(style)
        self._running: dict[str, tuple[str, float]] = {}
        self._waiting_since: float | None = None
        self._status_shown = False
        self._asking = False
        self._last_line = ""

    def show(self, shown: ShowCommand) -> None:
        match shown:
            case ShowText():
                self._waiting_since = None
                self._write(self._markdown.feed(shown.text))
            case ShowThought():
                self._last_line = shown.text
            case ShowCall():
                self._show_call(shown.call)
            case ShowResult():
                self._show_result(shown)
            case ShowNotice():
                self.line(self._style.paint(escape_controls(shown.text), "dim"))
            case _:
                assert_never(shown)

    def line(self, text: str) -> None:
        """Print a separate line, after ending the line that the model is writing."""
        self._write(f"{self._markdown.close()}{text}\n")

    def progress(self, line: str) -> None:
        self._last_line = line

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self._asking = True
        try:
            return await self._question(question)
        finally:
            self._asking = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Show a status line below the text while a turn runs; it is cleared at the end."""
        self._waiting_since = self._clock()
        self._last_line = ""
        ticker = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            ticker.cancel()
            self._running.clear()
            self._waiting_since = None
            self._clear_status()
            self._write(self._markdown.close())

    async def _question(self, question: ApprovalQuestion) -> ApprovalAnswer:
        if question.preview:
            self.line(paint_preview(question.preview, self._style))
        if self._read is None:
            self.line(f"{question.tool} needs approval, and no user can be asked: refused")
            return "no"
        summary = shorten(escape_controls(f"{question.tool} {question.subject}"), self._style.width)
        self.line(f"{self._style.paint('?', 'yellow', 'bold')} {self._style.paint(summary, 'bold')}")
        while True:
            try:
                typed = (await self._read(f"  {_CHOICES}: ")).strip().lower()
            except EOFError:
                return "no"
            if typed in _ANSWERS:
                return _ANSWERS[typed]

    def _show_call(self, call: ir.ToolCall) -> None:
        title = describe_call(call, self._style.width - 2)
        self._running[call.id] = title, self._clock()
        self._waiting_since = None
        self.line(f"{self._style.paint('●', 'blue')} {title}")

    def _show_result(self, shown: ShowResult) -> None:
        title, _ = self._running.pop(shown.call.id, (shown.call.name, 0.0))
        several = f"{title}: " if self._running else ""
        mark = self._style.paint("✗", "red") if shown.result.is_error else self._style.paint("✓", "green")
        took = f"  {shown.seconds:.2f} s"
        description = describe_result(shown.result, self._style.width - 4 - len(took) - len(several))
        self.line(f"  {mark} {several}{description}{self._style.paint(took, 'dim')}")
        if not self._running:
            self._waiting_since = self._clock()

    async def _tick(self) -> None:
        while self._style.live:
            await asyncio.sleep(_TICK_S)
            status = "" if self._asking else self._status()
            if status:
                painted = self._style.paint(shorten(status, self._style.width - 1), "dim")
                self._out.write(f"{_CLEAR}{painted}")
                self._out.flush()
                self._status_shown = True

    def _status(self) -> str:
        if self._running:
            title, since = next(iter(self._running.values()))
            more = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
            line = f"  {escape_controls(self._last_line)}" if self._last_line else ""
            return f"  … {title}{more} {self._clock() - since:.0f} s{line}"
        if self._waiting_since is not None:
            return f"  … {self._clock() - self._waiting_since:.0f} s  {escape_controls(self._last_line)}".rstrip()
        return ""

    def _write(self, text: str) -> None:
        if not text:
            return
        self._clear_status()
        self._out.write(text)
        self._out.flush()

    def _clear_status(self) -> None:
        if self._status_shown:
            self._out.write(_CLEAR)
            self._out.flush()
            self._status_shown = False


def describe_call(call: ir.ToolCall, width: int = 80) -> str:
    """Describe a call in one line: its name and its argument values, such as `read_file src/main.rs`."""
    try:
        args: dict[str, Any] = call.arguments
    except (msgspec.DecodeError, msgspec.ValidationError):
        args = {"": call.args.decode("utf-8", "replace")}
    words = [
        value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in args.values()
    ]
    return shorten(escape_controls(f"{call.name} {' '.join(words)}"), width)


def describe_result(result: ir.ToolResult, width: int = 80) -> str:
    """Describe a result by its first line and the number of further lines."""
    text = escape_controls(_result_as_text(result)).strip()
    first, _, rest = text.partition("\n")
    more = f"  (+{rest.count(chr(10)) + 1} lines)" if rest else ""
    return shorten(first, max(10, width - len(more))) + more


def _result_as_text(result: ir.ToolResult) -> str:
    """Return a result as text: a list as one entry per line, any other JSON value as JSON."""
    if not result.response:
        return "\n".join(part.text for part in result.content if isinstance(part, ir.Text))
    value = msgspec.json.decode(result.response)
    if isinstance(value, dict) and list(value) == ["output"]:
        value = value["output"]
    if isinstance(value, list):
        return (
            "\n".join(one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in value)
            or "[]"
        )
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class PlainScreen:
    """Writes the model's text unchanged to `out`, and a line per call, result and remark to `aside`."""

    def __init__(self, out: TextIO, aside: TextIO) -> None:
        self._out = out
        self._aside = aside
        self._open = False  # the last line of the answer has no newline yet

    def show(self, shown: ShowCommand) -> None:
        match shown:
            case ShowText():
                self._out.write(shown.text)
                self._out.flush()
                self._open = not shown.text.endswith("\n") if shown.text else self._open
            case ShowThought():
                pass
            case ShowCall():
                self.close()
                self.line(f"● {describe_call(shown.call)}")
            case ShowResult():
                mark = "✗" if shown.result.is_error else "✓"
                self.line(
                    f"  {mark} {shown.call.name}: {describe_result(shown.result)}  {shown.seconds:.2f} s"
                )
            case ShowNotice():
                self.line(escape_controls(shown.text))
            case _:
                assert_never(shown)

    def line(self, text: str) -> None:
        self._aside.write(f"{text}\n")
        self._aside.flush()

    def close(self) -> None:
        """End the answer with a newline if it has none."""
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False

    def progress(self, line: str) -> None:
        self.line(f"    {escape_controls(line)}")

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self.line(f"  {question.tool} needs approval, and no user can be asked: refused")
        return "no"


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
        self._emit("refused", tool=question.tool, subject=question.subject, why="no user can be asked")
        return "no"

    def begin(self, session: str, model: str) -> None:
        self._emit("start", session=session, model=model)

    def end(self, stop: TurnEnd, session_usage: SessionUsage, code: int) -> None:
        usage = {name: getattr(session_usage, name) for name in session_usage.__struct_fields__}
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
