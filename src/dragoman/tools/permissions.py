"""`RuleGuard`: decides by rules whether a call may run, and asks a person where the rules say `ask`."""

from __future__ import annotations

import asyncio
import os
import posixpath
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.hooks import Decision
from dragoman.tools.rules import Mode, Rule, Rules, parse_rule

__all__ = ["Approver", "Mode", "Rule", "RuleGuard", "Rules", "Verdict", "parse_rule"]

Verdict = Literal["once", "always", "no"]


class Approver(Protocol):
    """Asks a person, or decides on their behalf, whether a call may run."""

    async def approve(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, preview: str
    ) -> Verdict: ...


class RuleGuard:
    """A guard that applies permission rules; it asks one question at a time.

    Without an approver, calls that need approval are denied. With a root, rules see all names of a path: as it was
    given, and with symlinks resolved inside the root.
    """

    def __init__(self, rules: Rules, approver: Approver | None = None, *, root: Path | None = None) -> None:
        self._rules = rules
        self._approver = approver
        self._root = None if root is None else os.path.realpath(root)
        self._asking = asyncio.Lock()
        self._granted: dict[str, set[tuple[str, tuple[str, ...], str]]] = {}

    async def decide(self, definition: ToolDefinition, args: dict[str, Any], context: Context) -> Decision:
        """Apply the rules, and ask the approver if they say so; deny a call whose subject cannot be determined."""
        try:
            subjects = self._subjects(definition, args)
        except Exception as error:
            reason = f"what {definition.name} would do cannot be told from its arguments: {error}"
            return Decision(allowed=False, by="unreadable arguments", reason=reason)
        judgement = self._rules.evaluate(definition.name, definition.risk, subjects)
        if judgement.effect == "allow":
            return Decision(allowed=True, by=judgement.by)
        if judgement.effect == "deny":
            reason = f"{definition.name} is not allowed here ({judgement.by})"
            return Decision(allowed=False, by=judgement.by, reason=reason)
        return await self._ask(definition, args, context, subjects)

    def rule_for_always(self, definition: ToolDefinition, args: dict[str, Any]) -> str:
        """Return what the verdict `always` would allow for the rest of the session, for display in the question."""
        subjects = self._subjects(definition, args)
        return f"{definition.name}({subjects[0]})" if subjects else definition.name

    async def _ask(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, subjects: tuple[str, ...]
    ) -> Decision:
        if self._approver is None:
            reason = f"{definition.name} needs a person's approval, and nobody can be asked"
            return Decision(allowed=False, by="nobody to ask", reason=reason)
        granted = self._granted.setdefault(context.session, set())
        async with self._asking:  # an answer of `always` may settle the next question
            # A grant for a command includes its preview and so its folder: `make` elsewhere is another command.
            is_command = definition.risk == "run" and definition.subject is not None
            preview = await _preview(definition, args) if is_command else ""
            grant = (definition.name, subjects, preview)
            if grant in granted:
                return Decision(allowed=True, by="always, said the user")
            preview = preview or await _preview(definition, args)
            verdict = await self._approver.approve(definition, args, context, preview)
            if verdict == "always":
                granted.add(grant)
        if verdict == "no":
            return Decision(allowed=False, by="the user", reason=f"the user declined {definition.name}")
        return Decision(allowed=True, by=f"{verdict}, said the user")

    def _subjects(self, definition: ToolDefinition, args: dict[str, Any]) -> tuple[str, ...]:
        if definition.subject is None:
            return ()
        subject = definition.subject(args)
        if definition.risk == "run":
            return (subject,)
        given = args.get("path")  # rules may name a symlink that the subject has resolved
        paths = (given, subject) if isinstance(given, str) and given else (subject,)
        return tuple(dict.fromkeys(name for path in paths for name in subject_names(path, self._root)))


def subject_names(path: str, root: str | None) -> tuple[str, ...]:
    """Return the names of a path for matching: normalised, relative to the root, as given and with links resolved.

    Without a root the path is only normalised.
    """
    if root is None:
        return (posixpath.normpath(path),)
    given = os.path.normpath(os.path.join(root, path))
    real = os.path.realpath(os.path.join(root, path))
    names = (_relative(root, given), _relative(root, real))
    # The sandbox refuses paths outside the root when it opens the file; here only names are compared.
    return tuple(dict.fromkeys(name for name in names if not _is_outside(name))) or (names[0],)


def _relative(root: str, path: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _is_outside(name: str) -> bool:
    return name == ".." or name.startswith("../")


async def _preview(definition: ToolDefinition, args: dict[str, Any]) -> str:
    """Return the tool's preview of a call, or its arguments as JSON if the tool has no preview."""
    if definition.preview is None:
        return msgspec.json.format(msgspec.json.encode(args), indent=2).decode() if args else ""
    try:
        return await asyncio.to_thread(definition.preview, args)
    except Exception as error:
        return f"no preview: {error}"
