"""`PlainScreen`: output without a terminal, the model's answer on one stream and everything else on another."""

from __future__ import annotations

from typing import TextIO, assert_never

from dragoman.agent.events import (
    ApprovalAnswer,
    ApprovalQuestion,
    ShowCall,
    ShowCommand,
    ShowNotice,
    ShowResult,
    ShowText,
    ShowThought,
)
from dragoman.agent.tui.screen import describe_call, describe_result
from dragoman.agent.tui.style import escape_controls


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
        self.line(f"  nobody can be asked whether {question.tool} may go on: no")
        return "no"
