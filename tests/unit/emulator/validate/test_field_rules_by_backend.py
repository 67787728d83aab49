"""Stage 2 where AI Studio and Vertex differ, and limits on lists of tools."""

from __future__ import annotations

import pytest

from tests.unit.emulator.builders import STUDIO, VERTEX, Json, ask, declare, hello, message

BETA = "/v1beta1/projects/p/locations/eu/publishers/google/models/{}:{}"
VOICE = {"prebuiltVoiceConfig": {"voiceName": "kore"}}


@pytest.mark.parametrize("path", [STUDIO, "/v1/models/{}:{}", VERTEX, BETA])
def test_labels_are_taken_everywhere(path: str) -> None:
    ask(hello(labels={"team": "a"}), path=path)


STUDIO_ONLY: dict[str, Json] = {
    "serviceTier": {"serviceTier": "flex"},
    "store": {"store": True},
    "includeServerSideToolInvocations": {"toolConfig": {"includeServerSideToolInvocations": True}},
    "fileSearch": {"tools": [{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/x"]}}]},
}
VERTEX_ONLY: dict[str, Json] = {
    "modelArmorConfig": {"modelArmorConfig": {}},
    "outputConfig": {"outputConfig": {"outputUriPrefix": "gs://x"}},
    "streamFunctionCallArguments": {
        "tools": declare("f"),
        "toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}},
    },
    "enterpriseWebSearch": {"tools": [{"enterpriseWebSearch": {}}]},
}


@pytest.mark.parametrize(("name", "rest"), STUDIO_ONLY.items())
def test_fields_of_ai_studio_are_unknown_to_vertex(name: str, rest: Json) -> None:
    ask(hello(**rest))
    for path in (VERTEX, BETA):
        assert f'Unknown name "{name}"' in message(hello(**rest), path=path)


@pytest.mark.parametrize(("name", "rest"), VERTEX_ONLY.items())
def test_fields_of_vertex_are_unknown_to_ai_studio(name: str, rest: Json) -> None:
    ask(hello(**rest), path=VERTEX)
    assert f'Unknown name "{name}"' in message(hello(**rest))


def test_vertex_v1_lacks_what_v1beta1_has() -> None:
    body = hello(generationConfig={"modelConfig": {}})
    ask(body, path=BETA)
    assert 'Unknown name "modelConfig"' in message(body, path=VERTEX)


@pytest.mark.parametrize("tier", ["unspecified", "flex", "standard", "priority"])
def test_service_tiers_are_lower_case_words(tier: str) -> None:
    ask(hello(serviceTier=tier))
    assert "(type.googleapis.com/" in message(hello(serviceTier="express"))


def test_one_voice_or_several_but_not_both() -> None:
    several = {"speakerVoiceConfigs": [{"speaker": "a", "voiceConfig": VOICE}]}
    both = {"voiceConfig": VOICE, "multiSpeakerVoiceConfig": several}
    for path in (STUDIO, VERTEX):
        assert "mutually exclusive" in message(hello(generationConfig={"speechConfig": both}), path=path)
        for name in both:
            ask(hello(generationConfig={"speechConfig": {name: both[name]}}), path=path)


def test_logprobs_want_to_be_asked_for_in_each_back_ends_words() -> None:
    body = hello(generationConfig={"logprobs": 0})
    assert "response_logprobs is true" in message(body)
    assert "setting response_logprobs to be true" in message(body, path=VERTEX)
    ask(hello(generationConfig={"logprobs": 0, "responseLogprobs": True}), path=VERTEX)


def test_a_tool_of_vertex_is_one_thing() -> None:
    both: Json = {"googleSearch": {}, "urlContext": {}}
    ask(hello(tools=[both]))
    assert "tools[0].tool_type" in message(hello(tools=[both]), path=VERTEX)
    ask(hello(tools=[{name: {}} for name in both]), path=VERTEX)


def test_a_tool_holds_at_most_512_functions() -> None:
    names = [f"f{number}" for number in range(513)]
    ask(hello(tools=declare(*names[:512])))
    assert "tools[0].function_declarations: at most 512" in message(hello(tools=declare(*names)))
    ask(hello(tools=declare(*names[:512]) + declare("g")))
