"""Tools that are found: nothing is lost, nothing is declared too early, and the beginning of a request never changes."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.incremental import lru
from dragoman.incremental.lru import LruCache
from dragoman.ir.grammar import check_events
from tests.props.gateway_tool_clients import Call, Seen
from tests.props.hypothesis_settings import examples
from tests.props.tool_search_client import STYLES, Shop
from tests.unit.dialects.scripted_client import MODELS

SHOWN = ["Bash", "Read"]
WAITING = [
    f"mcp__{server}__do_{word}" for server in ("git", "mail") for word in ("alpha", "beta", "gamma", "delta")
]
MODEL = "gemini-3.8-flash"


class Step(msgspec.Struct, frozen=True):
    """What the model finds, and what it uses then; those that it has never found are left out."""

    says: str
    finds: tuple[str, ...]
    uses: tuple[str, ...]


STEPS = st.builds(
    Step,
    st.sampled_from(["", "so far so good"]),
    st.lists(st.sampled_from(WAITING), max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from(SHOWN + WAITING), max_size=2, unique=True).map(tuple),
)
TURNS = st.lists(st.lists(STEPS, max_size=3), min_size=1, max_size=3)
STYLE = st.sampled_from(sorted(STYLES))


class Told(msgspec.Struct):
    """What a conversation should come to."""

    found: list[str]
    used: list[tuple[str, int]]


def talk(shop: Shop, turns: list[list[Step]], model: str = MODEL) -> tuple[list[Seen], Told]:
    seen: list[Seen] = []
    told = Told([], [])
    for steps in turns:
        shop.speaker.say(_plan(shop, steps, told))
        while True:
            seen.append(shop.turn(model))
            if not seen[-1].calls:
                break
            shop.speaker.answer([(call, f"{call.name} is done") for call in reversed(seen[-1].calls)])
    return seen, told


def _plan(shop: Shop, steps: list[Step], told: Told) -> str:
    words: list[str] = []
    for step in steps:
        if step.says:
            words.append(f'say "{step.says}"')
        if step.finds:
            words.append(shop.style.words(*step.finds))
            told.found += [name for name in step.finds if name not in told.found]
        uses = []
        for name in step.uses:
            if name in SHOWN or name in told.found:
                uses.append(f'use {name} with {{"n": {len(told.used)}}}')
                told.used.append((name, len(told.used)))
        words += [" and ".join(uses)] if uses else []
    return " then ".join([*words, 'say "all done"'])


def made(calls: list[Call]) -> list[tuple[str, int]]:
    return [(call.name, call.args["n"]) for call in calls]


@examples(120)
@given(
    name=STYLE,
    turns=TURNS,
    model=st.sampled_from(MODELS),
    stream=st.booleans(),
    keeps_thinking=st.booleans(),
)
def test_every_tool_that_was_found_can_be_used_and_nothing_else_is_declared(
    name: str, turns: list[list[Step]], model: str, stream: bool, keeps_thinking: bool
) -> None:
    shop = Shop(STYLES[name], SHOWN, WAITING, stream=stream, keeps_thinking=keeps_thinking)
    seen, told = talk(shop, turns, model)
    assert [pair for answer in seen for pair in made(answer.calls)] == told.used
    assert all(answer.finish == ("calls" if answer.calls else "end") for answer in seen)
    declared = shop.declared()
    assert [*sorted(declared[0][:2]), *declared[0][2:]] == [*SHOWN, shop.style.function]
    # What words find comes with its likes; nothing comes without having been found.
    assert set(told.found) <= {*declared[-1], *_last_found(shop)}
    assert set(declared[-1]) <= {*SHOWN, shop.style.function, *WAITING}
    if shop.style.argument != "query":
        assert set(declared[-1]) - {*SHOWN, shop.style.function} <= set(told.found)
    assert_only_appended(shop)
    if keeps_thinking or shop.style.tongue != "gemini":
        assert shop.sentinels == 0


def assert_only_appended(shop: Shop) -> None:
    """Google's prefix cache can use it again; only when it is enough the search goes, for the last round."""
    search = shop.style.function
    for before, after in pairwise(shop.declared()):
        if search not in before or search not in after:
            before, after = ([name for name in names if name != search] for names in (before, after))
        assert after[: len(before)] == before


def _last_found(shop: Shop) -> set[str]:
    """A search in the last round of a turn is declared with the next request; there may be none."""
    tools = shop.exchanges[-1].request.tools
    return {tool.name for tool in tools}


@examples(60)
@given(
    name=STYLE,
    turns=TURNS,
    model=st.sampled_from(MODELS),
    stream=st.booleans(),
    keeps_thinking=st.booleans(),
)
def test_whatever_is_lost_google_takes_every_request(
    name: str, turns: list[list[Step]], model: str, stream: bool, keeps_thinking: bool
) -> None:
    style = STYLES[name]
    shop = Shop(style, SHOWN, WAITING, stream=stream, keeps_store=False, keeps_thinking=keeps_thinking)
    _, told = talk(shop, turns, model)
    if style.wire is not None:  # a search that the client sees is known without any store
        assert_only_appended(shop)
        assert {name for name, _ in told.used} <= set(shop.declared()[-1])
        assert shop.sentinels == 0 or not keeps_thinking


@examples(40)
@given(name=STYLE, turns=TURNS)
def test_what_the_client_gets_keeps_the_order_of_events(name: str, turns: list[list[Step]]) -> None:
    shop = Shop(STYLES[name], SHOWN, WAITING)
    talk(shop, turns)
    for exchange in shop.exchanges:
        assert check_events(exchange.client_events) is None


@examples(40)
@given(name=STYLE, turns=TURNS)
def test_a_stream_and_a_whole_answer_say_the_same(name: str, turns: list[list[Step]]) -> None:
    shops = [Shop(STYLES[name], SHOWN, WAITING, stream=stream) for stream in (True, False)]
    (streamed, _), (whole, _) = (talk(shop, turns) for shop in shops)
    assert [(one.text, made(one.calls), one.tokens) for one in streamed] == [
        (one.text, made(one.calls), one.tokens) for one in whole
    ]
    assert shops[0].declared() == shops[1].declared()


@examples(25)
@given(name=STYLE, turns=TURNS)
def test_caches_change_nothing(name: str, turns: list[list[Step]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LruCache, "find", lambda *_: None)
        patch.setattr(lru._SharedBudget, "max_bytes", 0)
        cold = Shop(STYLES[name], SHOWN, WAITING)
        talk(cold, turns)
    warm = Shop(STYLES[name], SHOWN, WAITING)
    talk(warm, turns)
    assert warm.bodies == cold.bodies


@pytest.mark.parametrize("name", sorted(STYLES))
def test_whatever_the_model_may_call_is_declared_or_can_be_found(name: str) -> None:
    for wanted in WAITING:
        shop = Shop(STYLES[name], SHOWN, WAITING)
        _, told = talk(shop, [[Step("", (wanted,), (wanted,))]])
        assert told.used == [(wanted, 0)]
        listed = shop.sent[0]["tools"][0]["functionDeclarations"][-1]["description"]
        assert wanted.rpartition("__")[2] in listed


@pytest.mark.parametrize("name", sorted(STYLES))
def test_a_model_that_only_searches_is_told_and_answers(name: str) -> None:
    shop = Shop(STYLES[name], SHOWN, WAITING)
    seen, _ = talk(shop, [[Step("", (WAITING[0],), ())] * 9])
    assert [one.finish for one in seen] == ["end"]
    assert len(shop.searches) == 3
    assert "the same call gave the same answer" in shop.bodies[-1].decode()
