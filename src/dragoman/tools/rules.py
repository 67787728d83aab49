"""Permission rules: `tool(pattern)` texts, what they match, and what they amount to together.

    write_file(src/**)       the tool, and what its subject (a path or a command) must look like
    run_command(git status*) a command is its exact argument list, quoted as a shell would need it
    mcp__github__*           a tool by pattern, whatever its arguments

Deny wins over ask, ask wins over allow, whatever their order and however specific they are; where no rule
matches, the tool's risk decides. A doubt never allows: an allow rule must match every name of a subject and
its wildcards stop at shell operators, a deny or ask rule needs to match one name and ignores case.
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
# Where a wildcard of an allow rule stops: behind these a shell would start something else.
_OPERATORS = ";|&<>$`\n\r\0"
_SAFE = f"[^{_OPERATORS}]"
_WILD = re.compile(r"\*\*/|\*\*|\*|\?")
_WORDS = {
    "path": {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"},
    "command": {"**/": ".*/", "**": ".*", "*": ".*", "?": "."},
    "careful": {"**/": f"{_SAFE}*/", "**": f"{_SAFE}*", "*": f"{_SAFE}*", "?": _SAFE},
}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; without a pattern it holds for every call of the tool."""

    effect: Effect
    tool: str
    pattern: str | None = None

    @property
    def text(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def covers(self, tool: str, risk: Risk, subjects: Sequence[str]) -> bool:
        """Whether it holds for a call; `subjects` are all names of what the call is about, none: unknown."""
        strict = self.effect != "allow"
        if not _translate(self.tool, "command", strict).fullmatch(tool):
            return False
        if self.pattern is None:
            return True
        if not subjects:
            return strict
        words = "path" if risk != "run" else "command" if strict else "careful"
        matcher = _translate(self.pattern, words, strict)
        found = (matcher.fullmatch(subject) is not None for subject in subjects)
        return any(found) if strict else all(found)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say about a call, and which of them says so."""

    effect: Effect
    by: str


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a session; `yolo` leaves only the deny rules, `read_only` denies all that is no read."""

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
        """The rules of the settings; with the `known` tools given, a name that is none of them is an error."""
        texts: dict[Effect, Iterable[str]] = {"allow": allow, "ask": ask, "deny": deny}
        names = tuple(known)
        rules = tuple(
            parse_rule(text, effect, where=f"{where}.{effect}[{index}]", known=names)
            for effect, given in texts.items()
            for index, text in enumerate(given)
        )
        return cls(rules=rules, mode=mode)

    def judge(self, tool: str, risk: Risk, subjects: Sequence[str] = ()) -> Judgement:
        """Allow, ask or deny; of several rules with the same effect the most specific one is named."""
        found = [rule for rule in self.rules if rule.covers(tool, risk, subjects)]
        denied = _name_rule(found, "deny")
        if denied is not None:
            return denied
        if self.mode == "read_only" and risk != "read":
            return Judgement(effect="deny", by="--read-only")
        if self.mode == "yolo":
            return Judgement(effect="allow", by="--yolo")
        default = Judgement(effect=DEFAULTS[risk], by=f"default for tools that {risk}")
        return _name_rule(found, "ask") or _name_rule(found, "allow") or default


def parse_rule(text: str, effect: Effect, *, where: str = "", known: Sequence[str] = ()) -> Rule:
    """One rule from its text, or an error that says what is wrong with it."""
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
    """Rules outlive a server that is down and a command tool that is switched off."""
    return "*" in tool or tool.startswith("mcp__") or tool == _COMMAND_TOOL


def _check_pattern(tool: str, pattern: str | None, where: str) -> None:
    """A pattern that could never match is an error: as a deny rule it would protect nothing."""
    if pattern is None or tool == _COMMAND_TOOL:
        return
    if tool.startswith("mcp__"):
        message = f"the arguments of MCP tools have no pattern\nfor every call write {tool}"
        raise ConfigError(message, where=where)
    if pattern.strip().startswith(("/", "~", "../")):
        message = f"{pattern!r} leads out of the project\npatterns are relative to its root, such as src/**"
        raise ConfigError(message, where=where)


def _name_rule(found: Sequence[Rule], effect: Effect) -> Judgement | None:
    rules = [rule for rule in found if rule.effect == effect]
    if not rules:
        return None
    return Judgement(effect=effect, by=f"{effect} rule {max(rules, key=_weight).text}")


def _weight(rule: Rule) -> tuple[bool, int]:
    """How specific a rule is: what is written out counts, wildcards do not."""
    return rule.pattern is not None, len(_WILD.sub("", rule.text))


@lru_cache(maxsize=1024)
def _translate(pattern: str, words: str, ignore_case: bool) -> re.Pattern[str]:
    """A pattern as a regular expression; `folder/**` is the folder and everything below it."""
    tail = ""
    if words == "path":
        pattern = re.sub("/+", "/", pattern).removeprefix("./")  # subjects are tidied alike
        if pattern.endswith("/**"):
            pattern, tail = pattern[:-3], "(?:/.*)?"
    start, parts = 0, []
    for wild in _WILD.finditer(pattern):
        parts += [re.escape(pattern[start : wild.start()]), _WORDS[words][wild[0]]]
        start = wild.end()
    parts += [re.escape(pattern[start:]), tail]
    regex = "".join(parts) if words == "path" else _linear(parts, words)
    return re.compile(regex, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _linear(parts: Sequence[str], words: str) -> str:
    """A piece between two stars is taken at its first place, once (`(?>…)`): a long command cannot stall us."""
    star = _WORDS[words]["*"]
    first, *others = "".join(parts).replace(f"{star}{star}", star).split(star)
    if not others:
        return first
    middle = "".join(f"(?>{star}?{piece})" for piece in others[:-1] if piece)
    return f"{first}{middle}{star}{others[-1]}"
