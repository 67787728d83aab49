"""Permission rules: parse `tool(pattern)` rules, match them against calls, and combine their effects.

    write_file(src/**)       a tool and a pattern for its subject, a path or a command
    run_command(git status*) a command is matched as its argument list, quoted as a shell would need it
    mcp__github__*           a pattern for the tool's name, with any arguments

Deny overrides ask, and ask overrides allow, regardless of order and specificity. If no rule matches, the tool's
risk decides. Matching fails safe: an allow rule must match every name of a subject and its wildcards do not match
shell operators, while a deny or ask rule needs to match only one name and ignores case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from dragoman.config.keys import did_you_mean
from dragoman.errors import ConfigError

Effect = Literal["allow", "ask", "deny"]
Mode = Literal["normal", "yolo", "read_only"]
Risk = Literal["read", "write", "run"]

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
