"""Questions to the person, one at a time, however many tools wait."""

from __future__ import annotations

from dragoman.agent.events import Answer, AskApproval, Command, Question, Settle


class Questions:
    """`want` and `answer` give what is to be done: ask the next question, tell the tools that waited."""

    def __init__(self) -> None:
        self._waiting: list[Question] = []

    def want(self, question: Question) -> list[Command]:
        self._waiting.append(question)
        return [AskApproval(question)] if len(self._waiting) == 1 else []

    def answer(self, question_id: str, answer: Answer) -> list[Command]:
        """`always` and `never` are meant for everything that waits with the same wish."""
        if not self._waiting or self._waiting[0].id != question_id:
            return []
        asked, *rest = self._waiting
        lasting = answer in ("always", "never")
        same = [one for one in rest if lasting and (one.tool, one.subject) == (asked.tool, asked.subject)]
        self._waiting = [one for one in rest if one not in same]
        following = [AskApproval(self._waiting[0])] if self._waiting else []
        return [*(Settle(one.id, answer) for one in (asked, *same)), *following]

    def drop(self) -> list[Command]:
        """Nobody answers any more: the tools that wait get a no."""
        settled: list[Command] = [Settle(one.id, "no") for one in self._waiting]
        self._waiting = []
        return settled
