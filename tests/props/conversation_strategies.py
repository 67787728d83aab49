"""Conversations in nobody's dialect, invented by Hypothesis."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.unit.dialects.anthropic.strategies import ARGS, NAMES

Json = dict[str, Any]

IMAGE = "\0image"  # stands for a picture among the words of a user or a tool

SAID = st.one_of(
    st.sampled_from(["hello", "ünï\u2028cödé", '{"a": 1}', "line\nline", "  spaces  "]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20),
).filter(lambda words: bool(words.strip()))
#: Schemas that Gemini takes as they are: a Gemini client's are not cleaned, everybody else's are.
SCHEMAS: list[Json] = [
    {"type": "object", "properties": {"pattern": {"type": "string"}, "n": {"type": "integer"}}},
    {
        "type": "object",
        "properties": {"x": {"type": "array", "items": {"type": "string"}}},
        "required": ["x"],
    },
]


class Call(msgspec.Struct, frozen=True):
    number: int
    name: str
    args: Json


class Result(msgspec.Struct, frozen=True):
    call: Call
    words: str
    has_image: bool
    failed: bool


class Step(msgspec.Struct, frozen=True):
    """The model speaks and calls; the tools answer, in any order; the program remarks."""

    said: str
    calls: list[Call]
    results: list[Result]
    remark: str


class Round(msgspec.Struct, frozen=True):
    """The user asks; an answer is missing where the user spoke again before it came."""

    asked: list[str]
    steps: list[Step]
    answer: str


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    system: list[str]
    rounds: list[Round]
    tools: list[tuple[str, str, Json]]  # name, description, schema
    choice: str  # auto, any, none, or =NAME
    one_call: bool
    max_tokens: int
    temperature: float | None
    stop: list[str]
    effort: str
    output: Json | None
    call_ids: bool  # said or not where a dialect can do without
    nested: bool  # which of two forms where a dialect has two

    @property
    def needs(self) -> set[str]:
        """What not every dialect can say."""
        steps = [step for item in self.rounds for step in item.steps]
        found = {
            "errors": any(result.failed for step in steps for result in step.results),
            "remarks": any(step.remark for step in steps),
            "one_call": self.one_call,
            "stop": bool(self.stop),
            "effort": bool(self.effort),
            "output": self.output is not None,
            "choice": self.choice != "auto",
            "systems": len(self.system) > 1,
            "tool_order": sorted(self.tools, key=_name) != self.tools,
            "mixed": any(_is_mixed(item.asked) for item in self.rounds),
            "pictures": any(result.has_image for step in steps for result in step.results[:-1]),
        }
        return {name for name, wanted in found.items() if wanted}


_WISHES = [
    *(frozenset[str]() for _ in range(3)),
    *(frozenset({wish}) for wish in ("errors", "remarks", "one_call", "stop", "effort", "output")),
    frozenset({"errors", "stop"}),
    frozenset({"remarks", "one_call", "effort", "output"}),
    *(frozenset({"plain", wish}) for wish in ("errors", "stop", "effort")),
]


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    wishes = draw(st.sampled_from(_WISHES))
    tools = draw(
        st.lists(st.tuples(NAMES, SAID | st.just(""), st.sampled_from(SCHEMAS)), max_size=3, unique_by=_name)
    )
    plain = "plain" in wishes  # nothing but what everybody can say
    if plain:
        tools.sort(key=_name)
    call_ids = draw(st.booleans())
    numbers = itertools.count(1)
    rounds = [draw(_round(wishes, tools, numbers, call_ids)) for _ in range(draw(st.integers(1, 3)))]
    rounds[-1] = msgspec.structs.replace(rounds[-1], answer="")
    choices = ["auto", "any", "none", *(f"={name}" for name, _, _ in tools)]
    return Talk(
        system=draw(st.lists(SAID, max_size=1 if plain else 2)),
        rounds=rounds,
        tools=tools,
        choice=draw(st.sampled_from(choices)) if tools and not plain else "auto",
        one_call="one_call" in wishes and bool(tools),
        max_tokens=draw(st.integers(4096, 70_000)),  # below, all but Gemini's own clients get less thinking
        temperature=draw(st.none() | st.floats(0, 1)),
        stop=draw(st.lists(SAID, min_size=1, max_size=6)) if "stop" in wishes else [],
        effort=draw(st.sampled_from(["low", "medium", "high"])) if "effort" in wishes else "",
        output=draw(st.sampled_from(SCHEMAS)) if "output" in wishes else None,
        call_ids=call_ids,
        nested=draw(st.booleans()),
    )


def _name(tool: tuple[str, str, Json]) -> str:
    return tool[0]


def _is_mixed(asked: list[str]) -> bool:
    """Whether it is more than words with pictures behind them."""
    return any(words != IMAGE for words in asked[1:])


@st.composite
def _round(draw: st.DrawFn, wishes: frozenset[str], tools: list[Any], numbers: Any, shuffled: bool) -> Round:
    steps = [draw(_step(wishes, tools, numbers, shuffled)) for _ in range(draw(st.integers(0, 2)))]
    asked = draw(st.lists(SAID | st.just(IMAGE), min_size=1, max_size=3))
    if "plain" in wishes:
        asked[1:] = [IMAGE] * len(asked[1:])
    return Round(asked, steps, draw(SAID | st.just("")))


@st.composite
def _step(draw: st.DrawFn, wishes: frozenset[str], tools: list[Any], numbers: Any, shuffled: bool) -> Step:
    names = st.sampled_from([name for name, _, _ in tools]) | NAMES if tools else NAMES
    if draw(st.booleans()):  # parallel calls are mostly calls of one function
        names = st.just(draw(names))
    calls = [Call(next(numbers), draw(names), draw(ARGS)) for _ in range(draw(st.integers(1, 3)))]
    failed = st.booleans() if "errors" in wishes else st.just(False)
    # Without ids only the order tells which result is whose.
    order = draw(st.permutations(calls)) if shuffled else calls
    results = [
        Result(
            call,
            draw(SAID | st.just("")),
            draw(st.booleans()) if "plain" not in wishes or call is order[-1] else False,
            draw(failed),
        )
        for call in order
    ]
    return Step(draw(SAID | st.just("")), calls, results, draw(SAID) if "remarks" in wishes else "")
