"""The queue of approval questions: only one is asked at a time, however many tools wait."""

from __future__ import annotations

from dragoman.agent.events import ApprovalAnswer, ApprovalQuestion, AskApproval, Command, ResolveApproval


class ApprovalQueue:
    """Queues questions; each method returns the commands to perform: ask the next question, deliver answers."""

    def __init__(self) -> None:
        self._waiting: list[ApprovalQuestion] = []

    def add(self, question: ApprovalQuestion) -> list[Command]:
        self._waiting.append(question)
        return [AskApproval(question)] if len(self._waiting) == 1 else []

    def answer(self, question_id: str, answer: ApprovalAnswer) -> list[Command]:
        """Settle the current question and ask the next.

        `always` and `never` also settle all waiting questions with the same tool and subject.
        """
        if not self._waiting or self._waiting[0].id != question_id:
            return []
        asked, *rest = self._waiting
        lasting = answer in ("always", "never")
        same = [one for one in rest if lasting and (one.tool, one.subject) == (asked.tool, asked.subject)]
        self._waiting = [one for one in rest if one not in same]
        following = [AskApproval(self._waiting[0])] if self._waiting else []
        return [*(ResolveApproval(one.id, answer) for one in (asked, *same)), *following]

    def reject_all(self) -> list[Command]:
        """Answer all waiting questions with `no`."""
        settled: list[Command] = [ResolveApproval(one.id, "no") for one in self._waiting]
        self._waiting = []
        return settled
