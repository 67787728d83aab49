"""Google's own tools, and what else an answer's end says: searches, pages, code, citations, ratings, logprobs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dragoman.emulator.model.builtin_tools import write_code
from tests.unit.emulator.builders import (
    OLD_MODEL,
    STUDIO,
    VERTEX,
    Json,
    ask,
    calls,
    declare,
    function_responses,
    hello,
    message,
    parts,
    stream,
    talk,
    text,
    user,
)

SEARCH: list[Json] = [{"googleSearch": {}}]
SHOWN = {"includeServerSideToolInvocations": True}


def kinds(answer: Json) -> list[str]:
    return [next(key for key in part if key not in ("thought", "thoughtSignature")) for part in parts(answer)]


def ending(body: Json, **options: Any) -> Json:
    found: Json = ask(body, **options)["candidates"][0]
    return found


def test_a_search_is_shown_when_the_request_wants_to_see_it() -> None:
    answer = ask(talk(user("news of today"), tools=SEARCH, toolConfig=SHOWN))
    assert kinds(answer) == ["toolCall", "toolResponse", "text"]
    call, response = (parts(answer)[0]["toolCall"], parts(answer)[1]["toolResponse"])
    assert call["id"] == response["id"]
    assert call["toolType"] == response["toolType"] == "GOOGLE_SEARCH_WEB"
    assert call["args"] == {"queries": ["news of today"]}
    assert answer["candidates"][0]["groundingMetadata"]
    assert kinds(ask(talk(user("news of today"), tools=SEARCH))) == ["text"]


def test_a_search_and_a_call_stand_in_one_content_and_can_be_replayed() -> None:
    tools = [*declare("get_weather"), *SEARCH]
    asked = talk(user("search the web, then use get_weather with {}"), tools=tools, toolConfig=SHOWN)
    first = ask(asked)
    assert kinds(first) == ["toolCall", "toolResponse", "functionCall"]
    again = talk(
        *asked["contents"],
        first["candidates"][0]["content"],
        function_responses("get_weather"),
        tools=tools,
        toolConfig=SHOWN,
    )
    assert kinds(ask(again)) == ["text"]
    assert text(ask(again)) == "get_weather returned: ok"


def test_a_forged_signature_on_a_tool_part_is_refused() -> None:
    first = ask(talk(user("news"), tools=SEARCH, toolConfig=SHOWN))["candidates"][0]["content"]
    first["parts"][0]["thoughtSignature"] = "Zm9yZ2Vk"
    refused = message(talk(user("news"), first, user("more"), tools=SEARCH, toolConfig=SHOWN))
    assert refused == "Corrupted thought signature."


def test_the_results_of_built_in_tools_are_counted_apart() -> None:
    usage = ask(talk(user("news of today"), tools=SEARCH))["usageMetadata"]
    assert usage["toolUsePromptTokenCount"] == 4
    assert usage["toolUsePromptTokensDetails"] == [{"modality": "TEXT", "tokenCount": 4}]
    assert "toolUsePromptTokenCount" not in ask(hello())["usageMetadata"]


SUMS = [
    ("what is 3 * (4 + 5)?", "print(3 * (4 + 5))", "27\n"),
    ("10/4", "print(10/4)", "2.5\n"),
    ("compute the primes", 'print("offline")', "offline\n"),
]


@pytest.mark.parametrize(("words", "source", "output"), SUMS)
@pytest.mark.parametrize(("path", "model"), [(STUDIO, "gemini-3.8-flash"), (VERTEX, OLD_MODEL)])
def test_code_is_written_and_run(words: str, source: str, output: str, path: str, model: str) -> None:
    answer = ask(talk(user(words), tools=[{"codeExecution": {}}]), path=path, model=model)
    assert kinds(answer) == ["executableCode", "codeExecutionResult", "text"]
    code, result = parts(answer)[0]["executableCode"], parts(answer)[1]["codeExecutionResult"]
    assert (code["language"], code["code"]) == ("PYTHON", source)
    assert (result["outcome"], result["output"]) == ("OUTCOME_OK", output)
    assert code.get("id") == result.get("id")
    assert ("id" in code) == (model != OLD_MODEL)
    assert output.strip() in text(answer)


@pytest.mark.parametrize(
    "words",
    ["hello", "on 2026-11-16", "1/0", "9" * 40 + " * 2", "version 1.2.3", "(1)" * 3, "2 ** 999999999"],
)
def test_what_is_no_plain_sum_is_not_run(words: str) -> None:
    assert write_code(words) is None


def test_pages_that_were_read_are_named() -> None:
    asked = talk(
        user("sum up https://a.org/x and https://b.org, https://a.org/x"), tools=[{"urlContext": {}}]
    )
    found = ending(asked)["urlContextMetadata"]["urlMetadata"]
    assert [entry["retrievedUrl"] for entry in found] == ["https://a.org/x", "https://b.org"]
    assert {entry["urlRetrievalStatus"] for entry in found} == {"URL_RETRIEVAL_STATUS_SUCCESS"}
    assert "urlContextMetadata" not in ending(talk(user("https://a.org")))


def test_citations_have_the_form_of_their_surface() -> None:
    asked = talk(user("say it is so then cite https://a.org/1"))
    entry = {"startIndex": 0, "endIndex": 8, "uri": "https://a.org/1"}
    assert ending(asked)["citationMetadata"] == {"citationSources": [entry]}
    assert ending(asked, path=VERTEX)["citationMetadata"] == {"citations": [entry]}
    assert "citationMetadata" not in ending(talk(user("say please cite your sources")))


def test_safety_ratings_come_when_safety_was_set() -> None:
    settings = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    (rating,) = ending(hello(safetySettings=settings))["safetyRatings"]
    assert rating == {"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}
    (rating,) = ending(hello(safetySettings=settings), path=VERTEX)["safetyRatings"]
    assert rating["severity"] == "HARM_SEVERITY_NEGLIGIBLE"
    assert "safetyRatings" not in ending(hello())


def test_logprobs_on_vertex() -> None:
    asked = talk(user("say abcdefghij"), generationConfig={"responseLogprobs": True, "logprobs": 2})
    found = ending(asked, path=VERTEX, model=OLD_MODEL)
    chosen = found["logprobsResult"]["chosenCandidates"]
    assert [item["token"] for item in chosen] == ["abcd", "efgh", "ij"]
    top = found["logprobsResult"]["topCandidates"]
    assert [len(entry["candidates"]) for entry in top] == [2, 2, 2]
    assert top[0]["candidates"][0] == chosen[0]
    assert top[0]["candidates"][1]["token"] != "abcd"
    assert math.isclose(found["avgLogprobs"], sum(item["logProbability"] for item in chosen) / 3)
    assert "avgLogprobs" not in ending(talk(user("say x")), path=VERTEX)


def test_nothing_produced_means_empty_content_and_no_counter() -> None:
    asked = talk(user("say xyz"), generationConfig={"stopSequences": ["x"]})
    for model in ("gemini-3.8-flash", OLD_MODEL):
        answer = ask(asked, model=model)
        assert answer["candidates"][0]["content"] == {}
        assert answer["candidates"][0]["finishReason"] == "STOP"
        assert "candidatesTokenCount" not in answer["usageMetadata"]
        assert stream(asked, model=model)[-1]["candidates"][0]["content"] == {}


def test_a_stop_sequence_cuts_exactly_also_between_pieces() -> None:
    words = "one two three four five six seven eight nine ten"
    asked = talk(user(f"say {words}"), generationConfig={"stopSequences": ["x sev"]})
    assert text(ask(asked)) == "one two three four five si"
    assert "".join(map(text, stream(asked))) == "one two three four five si"


def test_calls_are_made_beside_the_search_only_when_asked() -> None:
    tools = [*declare("get_weather"), *SEARCH]
    answer = ask(talk(user("use get_weather with {}"), tools=tools, toolConfig=SHOWN))
    assert kinds(answer) == ["functionCall"]
    assert calls(answer) == [("get_weather", {})]
