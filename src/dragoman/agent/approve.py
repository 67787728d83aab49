"""`MachineApprover`: connects the permission guard of the tools with the agent's machine.

The guard awaits `approve`, which posts the question as an event; the machine decides when the person is asked and
returns the answer through `settle`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from dragoman.agent.events import ApprovalAnswer, ApprovalQuestion, ApprovalRequested, Event
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.permissions import Verdict

_VERDICTS: dict[ApprovalAnswer, Verdict] = {"once": "once", "always": "always", "no": "no", "never": "no"}


class ApprovalWait:
    """How long a call has waited for approval; this time is subtracted from the tool's duration."""

    def __init__(self) -> None:
        self.seconds = 0.0


#: Set by the runner for each call.
APPROVAL_WAIT: ContextVar[ApprovalWait | None] = ContextVar("waits", default=None)


class MachineApprover:
    """An `Approver` that posts each question as an event and waits for the machine's answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._post: Callable[[Event], None] | None = None
        self._asked = 0
        self._waiting: dict[str, asyncio.Future[ApprovalAnswer]] = {}
        self._never: set[tuple[str, str, str]] = set()

    def connect(self, post: Callable[[Event], None]) -> None:
        """Set where questions are posted; until then every answer is `no`."""
        self._post = post

    async def approve(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, preview: str
    ) -> Verdict:
        subject = definition.subject(args) if definition.subject is not None else ""
        key = (context.session, definition.name, subject)
        if self._post is None or key in self._never:
            return "no"
        self._asked += 1
        question = ApprovalQuestion(
            id=f"q{self._asked}", tool=definition.name, subject=subject, preview=preview
        )
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = answer
        began = self._clock()
        self._post(ApprovalRequested(question))
        try:
            given = await answer
        finally:
            del self._waiting[question.id]
            waits = APPROVAL_WAIT.get()
            if waits is not None:
                waits.seconds += self._clock() - began
        if given == "never":
            self._never.add(key)
        return _VERDICTS[given]

    def resolve(self, question_id: str, answer: ApprovalAnswer) -> None:
        """Deliver the answer to the waiting `approve`; an unknown or settled question is ignored."""
        waiting = self._waiting.get(question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
