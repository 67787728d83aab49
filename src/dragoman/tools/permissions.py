"""Permissions: rules of the form `tool(pattern)`, and `RuleGuard`, which asks a person where the rules say `ask`.

    write_file(src/**)       a tool and a pattern for its subject, a path or a command
    run_command(git status*) a command is matched as its argument list, quoted as a shell would need it
    mcp__github__*           a pattern for the tool's name, with any arguments

Deny overrides ask, and ask overrides allow, regardless of order and specificity. If no rule matches, the tool's
risk decides. Matching fails safe: an allow rule must match every name of a subject and its wildcards do not match
shell operators, while a deny or ask rule needs to match only one name and ignores case.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from dragoman.config.settings import did_you_mean
from dragoman.errors import ConfigError
from dragoman.tools.definition import Context, Risk, ToolDefinition
from dragoman.tools.handler import Decision

Effect = Literal["allow", "ask", "deny"]
Mode = Literal["normal", "yolo", "read_only"]

DEFAULTS: dict[Risk, Effect] = {"read": "allow", "write": "ask", "run": "ask"}

_COMMAND_TOOL = "run_command"
_RULE = re.compile(r"(?P<tool>[^\s()]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)
_TOOL = re.compile(r"[A-Za-z_*][\w.:*-]*", re.ASCII)
# Wildcards of allow rules do not match these: a shell would start another command after them.
_OPERATORS = ";|&<>$`\n\r\0"
_SAFE = f"[^{_OPERATORS}]"
_WILDCARD = re.compile(r"\*\*/|\*\*|\*|\?")
_WILDCARDS = {
    "path": {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"},
    "command": {"**/": ".*/", "**": ".*", "*": ".*", "?": "."},
    "careful": {"**/": f"{_SAFE}*/", "**": f"{_SAFE}*", "*": f"{_SAFE}*", "?": _SAFE},
}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; without a pattern it applies to every call of the tool."""

    effect: Effect
    tool: str
    pattern: str | None = None

    @property
    def text(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def matches(self, tool: str, risk: Risk, subjects: Sequence[str]) -> bool:
        """Return whether the rule applies to a call.

        `subjects` are all names of the call's subject (a path as given and resolved); empty if it is unknown, in
        which case a rule with a pattern applies only if it asks or denies.
        """
        strict = self.effect != "allow"
        if not _translate(self.tool, "command", strict).fullmatch(tool):
            return False
        if self.pattern is None:
            return True
        if not subjects:
            return strict
        syntax = "path" if risk != "run" else "command" if strict else "careful"
        matcher = _translate(self.pattern, syntax, strict)
        found = (matcher.fullmatch(subject) is not None for subject in subjects)
        return any(found) if strict else all(found)


class RuleDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of the rules on a call, and the rule or default it comes from (`by`)."""

    effect: Effect
    by: str


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a session and its mode.

    In mode `yolo` everything is allowed that no deny rule forbids; `read_only` denies every tool whose risk is not
    `read`.
    """

    rules: tuple[Rule, ...] = ()
    mode: Mode = "normal"

    @classmethod
    def parse(
        cls,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        mode: Mode = "normal",
        known: Iterable[str] = (),
        where: str = "tools",
    ) -> Rules:
        """Parse the rules of the settings. Raise `ConfigError` for an invalid rule.

        If `known` tool names are given, a rule for any other tool is an error too.
        """
        texts: dict[Effect, Iterable[str]] = {"allow": allow, "ask": ask, "deny": deny}
        names = tuple(known)
        rules = tuple(
            parse_rule(text, effect, where=f"{where}.{effect}[{index}]", known=names)
            for effect, given in texts.items()
            for index, text in enumerate(given)
        )
        return cls(rules=rules, mode=mode)

    def evaluate(self, tool: str, risk: Risk, subjects: Sequence[str] = ()) -> RuleDecision:
        """Decide about a call; among several rules with the same effect, name the most specific one."""
        found = [rule for rule in self.rules if rule.matches(tool, risk, subjects)]
        denied = _decide_by(found, "deny")
        if denied is not None:
            return denied
        if self.mode == "read_only" and risk != "read":
            return RuleDecision(effect="deny", by="--read-only")
        if self.mode == "yolo":
            return RuleDecision(effect="allow", by="--yolo")
        default = RuleDecision(effect=DEFAULTS[risk], by=f"default for tools that {risk}")
        return _decide_by(found, "ask") or _decide_by(found, "allow") or default


def parse_rule(text: str, effect: Effect, *, where: str = "", known: Sequence[str] = ()) -> Rule:
    """Parse one rule. Raise `ConfigError` if it is malformed, can never match, or names an unknown tool."""
    text = text.strip()
    found = _RULE.fullmatch(text)
    if found is None or not _TOOL.fullmatch(found["tool"]):
        message = f"{text!r} is no rule\nwrite tool or tool(pattern), such as write_file(src/**)"
        raise ConfigError(message, where=where)
    tool, pattern = found["tool"], found["pattern"]
    if pattern is not None and not pattern.strip():
        raise ConfigError(f"{text!r} has no pattern\nfor every call write {tool}", where=where)
    _check_pattern(tool, pattern, where)
    if known and not _may_be_missing(tool) and tool not in known:
        raise ConfigError(f"there is no tool {tool!r}{did_you_mean(tool, known)}", where=where)
    return Rule(effect=effect, tool=tool, pattern=pattern if pattern is None else pattern.strip())


def _may_be_missing(tool: str) -> bool:
    """Return whether a rule may name a tool that does not exist at the moment.

    An MCP server may be down and `run_command` may be disabled; their rules stay valid.
    """
    return "*" in tool or tool.startswith("mcp__") or tool == _COMMAND_TOOL


def _check_pattern(tool: str, pattern: str | None, where: str) -> None:
    """Raise `ConfigError` for a pattern that can never match: as a deny rule it would protect nothing."""
    if pattern is None or tool == _COMMAND_TOOL:
        return
    if tool.startswith("mcp__"):
        message = f"the arguments of MCP tools have no pattern\nfor every call write {tool}"
        raise ConfigError(message, where=where)
    if pattern.strip().startswith(("/", "~", "../")):
        message = f"{pattern!r} leads out of the project\npatterns are relative to its root, such as src/**"
        raise ConfigError(message, where=where)


def _decide_by(found: Sequence[Rule], effect: Effect) -> RuleDecision | None:
    rules = [rule for rule in found if rule.effect == effect]
    if not rules:
        return None
    return RuleDecision(effect=effect, by=f"{effect} rule {max(rules, key=_specificity).text}")


def _specificity(rule: Rule) -> tuple[bool, int]:
    """Return how specific a rule is: first whether it has a pattern, then its length without wildcards."""
    return rule.pattern is not None, len(_WILDCARD.sub("", rule.text))


@lru_cache(maxsize=1024)
def _translate(pattern: str, syntax: str, ignore_case: bool) -> re.Pattern[str]:
    """Compile a pattern to a regular expression; `folder/**` matches the folder and everything below it."""
    tail = ""
    if syntax == "path":
        pattern = re.sub("/+", "/", pattern).removeprefix("./")  # subjects are normalised in the same way
        if pattern.endswith("/**"):
            pattern, tail = pattern[:-3], "(?:/.*)?"
    start, parts = 0, []
    for wild in _WILDCARD.finditer(pattern):
        parts += [re.escape(pattern[start : wild.start()]), _WILDCARDS[syntax][wild[0]]]
        start = wild.end()
    parts += [re.escape(pattern[start:]), tail]
    regex = "".join(parts) if syntax == "path" else _join_linear(parts, syntax)
    return re.compile(regex, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _join_linear(parts: Sequence[str], syntax: str) -> str:
    """Join the parts so that matching takes linear time.

    A piece between two stars is an atomic group (`(?>…)`) that matches at its first position and is never
    retried, so that a long command cannot cause catastrophic backtracking.
    """
    star = _WILDCARDS[syntax]["*"]
    first, *others = "".join(parts).replace(f"{star}{star}", star).split(star)
    if not others:
        return first
    middle = "".join(f"(?>{star}?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}{star}{others[-1]}"


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
