"""Choose a tool by the name in the user's text, or by similarity to its name and description."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from dragoman.emulator.parsed_request import DeclaredFunction

_NAME_WEIGHT = 4.0
_DESCRIPTION_LIMIT = 3
_THRESHOLD = 3.0
#: Only the first words are scored: long pasted documents match every tool.
_WORDS_READ = 80

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VERBS_WITHOUT_MEANING = frozenset({"get", "do", "make", "tool", "function", "mcp", "the", "default", "api"})
_STOP_WORDS = """
a about all also an and any are as at be been being but by can could did do does for from get give
given had has have he her here him his how i if in into is it its just let like make may me more
most my new no not now of on one only or other our out please she should so some such tell than that
the their them then there these they this through to too until up us use used uses using very via
want was we were what when where which while who why will with would you your
"""
_SIDE_EFFECT_TEXT = """
agent apply bash clear cmd code command commit content create cron delete deploy drop edit enter exec execute exit
grant insert install kill launch merge monitor move multiedit new notebook old patch pay post publish push put
remove rename replace reset restart revoke rm run schedule script send set shell skill spawn start stop submit task
todo transfer unlink update upload worktree workflow write
"""
_SIDE_EFFECT_WORDS = frozenset(_SIDE_EFFECT_TEXT.split())
#: These count only in function names; in parameter names they are often nouns.
_SIDE_EFFECT_NAME_TEXT = """
add append approve buy cancel chmod chown click destroy disable enable erase mkdir modify overwrite press purchase
purge reboot refund register reject reserve restore revert save sell shutdown subscribe terminate touch trigger
truncate uninstall upgrade withdraw wipe
"""
_SIDE_EFFECT_NAME_WORDS = _SIDE_EFFECT_WORDS | frozenset(_SIDE_EFFECT_NAME_TEXT.split())
_SIDE_EFFECT_FIRST_TEXT = (
    "book call charge close copy cp email format import lock make mark mv order print record sign sync tag"
)
_SIDE_EFFECT_FIRST_WORDS = frozenset(_SIDE_EFFECT_FIRST_TEXT.split())
_STOP = frozenset(re.findall(r"\w+", _STOP_WORDS))


def find_by_name(name: str, functions: Sequence[DeclaredFunction]) -> DeclaredFunction | None:
    """Return the function with this name.

    An exact match wins over one that ignores case, then a suffix, then a substring.
    """
    lowered = name.lower()
    for fits in (
        lambda declared: declared == name,
        lambda declared: declared.lower() == lowered,
        lambda declared: declared.lower().endswith(lowered),
        lambda declared: lowered in declared.lower(),
    ):
        found = next((function for function in functions if fits(function.name)), None)
        if found is not None:
            return found
    return None


def find_by_similarity(user_text: str, functions: Sequence[DeclaredFunction]) -> DeclaredFunction | None:
    """Return the best harmless function above the threshold; the first declared one wins a tie.

    Tools that run, write or send anything are never chosen by similarity, because the emulator does not
    understand "do not".
    """
    ranked = rank_functions(user_text, [function for function in functions if is_read_only(function)])
    return ranked[0][1] if ranked and ranked[0][0] >= _THRESHOLD else None


def is_read_only(function: DeclaredFunction) -> bool:
    """Whether neither the name nor the parameters suggest that the function changes something."""
    properties = function.schema.get("properties")
    named = properties if isinstance(properties, Mapping) else {}
    words_of_names = {word for name in named for word in _split_name(name)}
    first = _split_name(function.name.rpartition("__")[2])[:1]  # mcp__server__name
    return not (
        words_of_names & _SIDE_EFFECT_WORDS
        or set(name_words(function)) & _SIDE_EFFECT_NAME_WORDS
        or set(first) & _SIDE_EFFECT_FIRST_WORDS
    )


def find_by_verb(verb: str, functions: Sequence[DeclaredFunction]) -> DeclaredFunction | None:
    """Return the first harmless function with the verb in its name."""
    return next((item for item in functions if verb in name_words(item) and is_read_only(item)), None)


def name_words(function: DeclaredFunction) -> tuple[str, ...]:
    return _split_name(function.name)


def rank_functions(
    user_text: str, functions: Sequence[DeclaredFunction]
) -> list[tuple[float, DeclaredFunction]]:
    """Return all functions with their scores, best first."""
    query_words = set(_content_words(user_text)[:_WORDS_READ])
    scored = [(_score(query_words, function), function) for function in functions]
    return sorted(scored, key=lambda pair: -pair[0])


@lru_cache(maxsize=4096)
def _split_name(name: str) -> tuple[str, ...]:
    """Split a name into lower-case words. Cached: all requests of a conversation have the same tools."""
    return tuple(word.lower() for word in _CAMEL.split(name) if word)


def _score(query_words: set[str], function: DeclaredFunction) -> float:
    name = [_stem(word) for word in name_words(function)]
    telling = [word for word in name if word not in _VERBS_WITHOUT_MEANING] or name
    in_name = sum(1 for word in telling if word in query_words)
    described = _description_words(function.description)
    return _NAME_WEIGHT * in_name / max(1, len(telling)) + min(
        _DESCRIPTION_LIMIT, len(query_words & described)
    )


@lru_cache(maxsize=512)
def _description_words(description: str) -> frozenset[str]:
    return frozenset(_content_words(description)[:_WORDS_READ])


def _content_words(text: str) -> list[str]:
    lowered = (word.lower() for word in _WORD.findall(text[:4000]))
    return [_stem(word) for word in lowered if len(word) > 1 and word not in _STOP]


def _stem(word: str) -> str:
    """Strip common endings, so that `files` matches `file` and `reading` matches `read`."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)].removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word
