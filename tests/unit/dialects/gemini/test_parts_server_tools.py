"""What a service ran, in a history: Google's own parts where it wants them back, words for everything else."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import ServerCall, ServerResult, ServerTool, Signature, Source
from tests.unit.dialects.gemini.builders import (
    READ,
    Json,
    call,
    contents_of,
    model,
    notes_of,
    remark,
    result,
    user,
)

SEARCH = ServerTool(kind="web_search")
PART: Json = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "a"}, "thoughtSignature": "s"}
OWN = Signature(
    '[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","id":"a"},"thoughtSignature":"s"}]', "gemini-g3"
)
HITS = (Source(url="https://a.org", title="A"), Source(url="https://b.org", text="words"))


def searched(signature: Signature | None = None, identity: str = "s1") -> tuple[ServerCall, ServerResult]:
    return (
        ServerCall(
            id=identity,
            kind="web_search",
            name="web_search",
            args=b'{"queries":["q","r"]}',
            signature=signature,
        ),
        ServerResult(call_id=identity, kind="web_search", sources=HITS),
    )


def turn(*parts: Any, **options: Any) -> list[Json]:
    """The parts of the model's turn."""
    found: list[Json] = contents_of(user("q"), model(*parts), user("more"), **options)[1]["parts"]
    return found


def test_google_gets_its_own_words_back() -> None:
    assert turn(*searched(OWN), "text", server_tools=(SEARCH,)) == [PART, {"text": "text"}]


def test_of_tools_that_ran_together_the_first_one_has_all_words() -> None:
    others = searched(Signature("[]", "gemini-g3"), "s2")
    assert turn(*searched(OWN), *others, "text", server_tools=(SEARCH,)) == [PART, {"text": "text"}]


WORDS = "[web_search: q; r]\nA <https://a.org>\n<https://b.org> words\n"


@pytest.mark.parametrize(
    ("signature", "options"),
    [
        (None, {"server_tools": (SEARCH,)}),
        (OWN, {}),
        (OWN, {"server_tools": (SEARCH,), "to": "gemini-2.5-flash"}),
        (OWN, {"server_tools": (SEARCH,), "backend": "vertex"}),
        (Signature("not json", "gemini-g3"), {"server_tools": (SEARCH,)}),
        (Signature("[5]", "gemini-g3"), {"server_tools": (SEARCH,)}),
        (OWN, {"server_tools": (SEARCH,), "tools": (READ,), "backend": "vertex"}),
    ],
    ids=["lost", "no tool", "other model", "other back end", "damaged", "no parts", "dropped tool"],
)
def test_k3_what_cannot_go_back_is_told_in_words(signature: Signature | None, options: Any) -> None:
    assert turn(*searched(signature), "text", **options) == [{"text": WORDS}, {"text": "text"}]


def test_words_of_another_back_end_are_noted() -> None:
    foreign = searched(Signature("[]", "vertex-g3"))
    (note,) = notes_of(user("q"), model(*foreign), user("more"), server_tools=(SEARCH,))
    assert (note.kind, note.where) == ("dropped", "messages")


TOLD: dict[str, tuple[list[Any], str]] = {
    "a page": (
        [
            ServerCall(id="1", kind="web_fetch", name="web_fetch", args=b'{"url":"https://a.org"}'),
            ServerResult(
                call_id="1", kind="web_fetch", sources=(Source(url="https://a.org", error="paywall"),)
            ),
        ],
        "[web_fetch: https://a.org]\n<https://a.org> paywall\n",
    ),
    "a program": (
        [
            ServerCall(id="1", kind="code_execution", name="bash_code_execution", args=b'{"command":"ls"}'),
            ServerResult(call_id="1", kind="code_execution", output="a\nb", error="failed"),
        ],
        "[code_execution: bash_code_execution ls]\na\nb\nfailed\n",
    ),
    "a tool of a server": (
        [
            ServerCall(id="1", kind="mcp", name="read", label="docs", args=b'{"a":1,"b":2}'),
            ServerResult(call_id="1", kind="mcp", output="text"),
        ],
        '[mcp: docs read {"a":1,"b":2}]\ntext\n',
    ),
    "arguments of no words": (
        [
            ServerCall(id="1", kind="mcp", name="count", args=b'{"n":5}'),
            ServerResult(call_id="1", kind="mcp", output="5"),
        ],
        '[mcp: count {"n":5}]\n5\n',
    ),
    "a call without its result": (
        [ServerCall(id="1", kind="web_search", name="web_search", args=b'{"query":"q"}')],
        "[web_search: q]\nno result\n",
    ),
    "a result without its call": (
        [ServerResult(call_id="1", kind="web_search", error="unavailable")],
        "[web_search]\nunavailable\n",
    ),
}


@pytest.mark.parametrize(("parts", "words"), TOLD.values(), ids=TOLD.keys())
def test_everything_has_words(parts: list[Any], words: str) -> None:
    assert turn(*parts) == [{"text": words}]


def test_calls_of_no_name_are_told_one_by_one() -> None:
    assert len(turn(*searched(identity=""), *searched(identity=""))) == 2


def test_beside_a_call_of_the_clients_it_stays_in_the_models_turn() -> None:
    parts = contents_of(
        user("q"), model(*searched(OWN), call()), user(result()), tools=(READ,), server_tools=(SEARCH,)
    )[1]["parts"]
    assert [next(iter(part)) for part in parts] == ["toolCall", "functionCall"]


def test_in_a_remark_it_is_a_remark() -> None:
    (content,) = contents_of(user("q"), remark(ServerResult(call_id="1", kind="mcp", output="x")))
    assert "[mcp]\nx" in content["parts"][1]["text"]


def test_the_same_history_is_encoded_anew_where_the_tools_are_others() -> None:
    asked = (user("q"), model(*searched(OWN)), user("more"))
    assert contents_of(*asked, server_tools=(SEARCH,))[1]["parts"] == [PART]
    assert contents_of(*asked)[1]["parts"] == [{"text": WORDS}]
    assert contents_of(*asked, server_tools=(SEARCH,))[1]["parts"] == [PART]
