"""The admin API of sessions' tools: what is taken, what is refused and in which words, and who may call at all."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from dragoman.gateway.auth.authenticator import scope_of
from dragoman.gateway.gateway_tools.session_state import SessionCall, ToolSession
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, gateway, streams

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SHAPES: dict[str, Json] = {
    "gemini": {"functionDeclarations": [{"name": "weather", "parametersJsonSchema": SCHEMA}]},
    "gemini, snake": {"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]},
    "a declaration": {"name": "weather", "parametersJsonSchema": SCHEMA},
    "anthropic": {"name": "weather", "input_schema": SCHEMA},
    "responses": {"type": "function", "name": "weather", "parameters": SCHEMA},
    "chat": {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}},
    "bedrock": {"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}},
    "amazonq": {"toolSpecification": {"name": "weather", "inputSchema": {"json": SCHEMA}}},
}
RESULTS: dict[str, Json] = {
    "response": {"call_id": "c1", "response": {"sky": "blue"}},
    "output": {"call_id": "c1", "output": "blue"},
    "output object": {"call_id": "c1", "output": {"sky": "blue"}},
    "output number": {"call_id": "c1", "output": 7},
    "error": {"call_id": "c1", "error": "no sky"},
    "responses": {"type": "function_call_output", "call_id": "c1", "output": "blue"},
    "anthropic": {"type": "tool_result", "tool_use_id": "c1", "content": "blue"},
    "chat": {"role": "tool", "tool_call_id": "c1", "content": "blue"},
    "bedrock": {"toolResult": {"toolUseId": "c1", "content": [{"text": "blue"}]}},
    "gemini": {"functionResponse": {"id": "c1", "name": "weather", "response": {"sky": "blue"}}},
}


class Admin:
    def __init__(self, running: Running) -> None:
        self._running = running
        self.headers = dict(running.headers)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        url = f"{self._running.url}/v1/sessions/{path}"
        data = io.BytesIO(json.dumps(body).encode()) if body is not None else None
        sent = {"content-type": "application/json", **(headers or self.headers)}
        async with self._running.session.request(method, url, data=data, headers=sent) as answer:
            return answer.status, await answer.json()

    async def put(self, *tools: Json, **more: Any) -> tuple[int, Any]:
        return await self.ask("PUT", "s/tools", {"tools": list(tools), **more})

    async def capture(self, *ids: str, session: str = "s") -> None:
        store = self._running.app.gateway.store.session_tools
        calls = [SessionCall(id=own, name="weather", args={"city": "Oslo"}, created_s=7) for own in ids]
        await ToolSession(store, scope_of(KEY), session).add_calls(calls)


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        yield Admin(running)


@pytest.mark.parametrize("shape", SHAPES)
async def test_tools_are_taken_in_every_apis_words_and_shown_in_googles(admin: Admin, shape: str) -> None:
    status, put = await admin.put(SHAPES[shape])
    declared = [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": SCHEMA}]}]
    assert (status, put["tools"]) == (200, declared)
    assert await admin.ask("GET", "s/tools") == (200, put)
    assert put == {"session": "s", "tools": declared, "toolConfig": None, "keep_client_tools": True}


async def test_what_was_set_is_replaced_and_cleared(admin: Admin) -> None:
    config = {"functionCallingConfig": {"mode": "ANY"}}
    await admin.put(SHAPES["anthropic"], {"name": "clock"}, toolConfig=config, keep_client_tools=False)
    _, shown = await admin.ask("GET", "s/tools")
    assert (shown["toolConfig"], shown["keep_client_tools"]) == (config, False)
    assert [one["name"] for one in shown["tools"][0]["functionDeclarations"]] == ["weather", "clock"]
    await admin.put({"name": "clock"})
    _, shown = await admin.ask("GET", "s/tools")
    assert (shown["toolConfig"], shown["keep_client_tools"]) == (None, True)
    await admin.capture("c1")
    assert await admin.ask("DELETE", "s/tools") == (200, {"session": "s", "deleted": True})
    for method, path in (("GET", "s/tools"), ("DELETE", "s/tools"), ("GET", "s/calls")):
        status, refused = await admin.ask(method, path)
        assert status == 404
        assert "'s' has no tools here" in refused["error"]["message"]
    await admin.put({"name": "clock"})
    assert (await admin.ask("GET", "s/calls"))[1]["calls"] == []


async def test_names_are_read_in_googles_other_spelling_too(admin: Admin) -> None:
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    _, shown = await admin.put({"name": "clock"}, tool_config=config, keepClientTools=False)
    assert (shown["toolConfig"], shown["keep_client_tools"]) == (config, False)


REFUSED: list[tuple[Any, str, str]] = [
    ({"tools": [{"googleSearch": {}}]}, "tools[0]", "no function"),
    ({"tools": [{"name": "a"}, {"type": "web_search_20250305", "name": "b"}]}, "tools[1]", "no function"),
    ({"tools": [{"functionDeclarations": [], "googleSearch": {}}]}, "tools[0]", "only functions"),
    (
        {"tools": [{"name": "a"}, {"functionDeclarations": [{"description": "x"}]}]},
        "tools[1].functionDeclarations[0].name",
        "needs a name",
    ),
    ({"tools": [{"name": "a"}, {"type": "function", "function": {}}]}, "tools[1].function", "name"),
    ({"tools": [{"name": "a"}, {"name": "a", "input_schema": SCHEMA}]}, "tools", "declared twice"),
    ({"tools": [{"name": f"t{number}"} for number in range(513)]}, "tools", "at most 512"),
    ({"tools": {}}, "tools", "Expected `array`"),
    ({"tols": []}, "", "unknown field `tols`"),
    ({"keep_client_tools": "yes"}, "keep_client_tools", "Expected `bool`"),
    (
        {"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}},
        "toolConfig.functionCallingConfig.mode",
        "not one of AUTO",
    ),
    (
        {"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["a"]}}},
        "toolConfig.functionCallingConfig.allowedFunctionNames",
        "ANY or VALIDATED only",
    ),
    (
        {
            "keep_client_tools": False,
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}},
        },
        "toolConfig.functionCallingConfig.allowedFunctionNames",
        "no tool named 'a'",
    ),
    ([], "", "Expected `object`"),
]


@pytest.mark.parametrize(("body", "where", "why"), REFUSED)
async def test_what_could_not_work_is_refused_with_the_place(
    admin: Admin, body: Any, where: str, why: str
) -> None:
    status, refused = await admin.ask("PUT", "s/tools", body)
    assert status == 400, refused
    assert why in refused["error"]["message"]
    assert (refused["error"]["param"] or "") == where
    assert (await admin.ask("GET", "s/tools"))[0] == 404


async def test_a_name_of_a_session_may_be_anything_but_long_or_nothing(admin: Admin) -> None:
    for name in ("a%2Fb", "user_1_account__session_x", "%C3%BC%20%3F"):
        assert (await admin.ask("PUT", f"{name}/tools", {"tools": [{"name": "clock"}]}))[0] == 200
    assert (await admin.ask("GET", "a%2Fb/tools"))[1]["session"] == "a/b"
    status, refused = await admin.ask("GET", f"{'x' * 513}/tools")
    assert (status, refused["error"]["param"]) == (400, "session")


@pytest.mark.parametrize("shape", RESULTS)
async def test_results_are_taken_in_every_apis_words(admin: Admin, shape: str) -> None:
    await admin.put({"name": "weather"})
    await admin.capture("c1", "c2")
    status, taken = await admin.ask("POST", "s/results", {"results": [RESULTS[shape]]})
    assert (status, taken) == (200, {"session": "s", "accepted": 1, "open_calls": ["c2"]})
    _, shown = await admin.ask("GET", "s/calls")
    assert [(one["id"], one["status"]) for one in shown["calls"]] == [("c1", "answered"), ("c2", "open")]
    call = {"id": "c2", "name": "weather", "args": {"city": "Oslo"}, "status": "open", "created_at": 7}
    assert (await admin.ask("GET", "s/calls?status=open"))[1]["calls"] == [call]


@pytest.mark.parametrize(
    ("entry", "where", "why"),
    [
        (
            {"call_id": "c9", "output": "x"},
            "results[0]",
            "no call 'c9' was captured in this session; open are: c1",
        ),
        ({"output": "x"}, "results[0]", "no result"),
        ({"call_id": "c1", "response": "x"}, "results[0].response", "an object"),
        ({"call_id": 1, "response": {}}, "results[0]", "names its call"),
        ({"call_id": "", "response": {}}, "results[0]", "names its call"),
        (
            {"functionResponse": {"name": "weather", "response": {}}},
            "results[0].functionResponse.id",
            "by id",
        ),
        ({"tool_use_id": "c1", "content": [{"type": "nonsense"}]}, "results[0]", "nonsense"),
    ],
)
async def test_a_result_that_fits_no_call_is_refused(admin: Admin, entry: Json, where: str, why: str) -> None:
    await admin.put({"name": "weather"})
    await admin.capture("c1")
    status, refused = await admin.ask("POST", "s/results", {"results": [entry]})
    assert status == 400, refused
    assert why in refused["error"]["message"]
    assert refused["error"]["param"].startswith(where)
    assert (await admin.ask("POST", "s/results", {"results": []}))[0] == 400


async def test_a_call_is_answered_once(admin: Admin) -> None:
    await admin.put({"name": "weather"})
    await admin.capture("c1", "c2")
    twice = {"results": [{"call_id": "c1", "output": "a"}, {"call_id": "c1", "output": "b"}]}
    assert (await admin.ask("POST", "s/results", twice))[0] == 409
    assert (await admin.ask("GET", "s/calls?status=open"))[1]["calls"] != []
    first = {"results": [{"call_id": "c1", "output": "a"}]}
    assert (await admin.ask("POST", "s/results", first))[0] == 200
    status, refused = await admin.ask("POST", "s/results", first)
    assert status == 409
    assert "has its result already" in refused["error"]["message"]
    assert (await admin.ask("GET", "s/calls?status=nonsense"))[0] == 400


async def test_too_much_is_refused(admin: Admin) -> None:
    status, _ = await admin.put({"name": "clock", "description": "x" * (1 << 20)})
    assert status == 413
    await admin.put({"name": "weather"})
    await admin.capture("c1")
    big = {"results": [{"call_id": "c1", "output": "x" * (16 << 20)}]}
    assert (await admin.ask("POST", "s/results", big))[0] == 413


async def test_only_a_gateway_key_opens_and_each_sees_its_own_sessions() -> None:
    other = "dgm-another-key-of-sufficient-length"
    google = FakeGoogle(streams(HELLO))
    async with gateway(google, keys=(KEY, other), server={"no_auth": True}) as running:
        admin = Admin(running)
        assert (await admin.put({"name": "clock"}))[0] == 200
        operations = (("GET", "s/tools"), ("DELETE", "s/tools"), ("GET", "s/calls"))
        for headers in (
            {"x-goog-api-key": "AIza-their-own-google-key"},
            {"x-api-key": "unknown"},
            {"accept": "*/*"},
        ):
            for method, path in operations:
                status, refused = await admin.ask(method, path, **headers)
                assert status == 401
                assert "gateway key" in refused["error"]["message"]
            for method, path in (("PUT", "s/tools"), ("POST", "s/results")):
                assert (await admin.ask(method, path, {}, **headers))[0] == 401
        typed = {"content-type": "text/plain"}  # nothing of a stranger's request is looked at
        assert (await admin.ask("PUT", "s/tools", {}, **typed))[0] == 401
        for method, path in operations:
            assert (await admin.ask(method, path, **{"x-api-key": other}))[0] == 404
        assert (await admin.ask("GET", "s/tools"))[0] == 200


async def test_the_openapi_document_is_valid_and_describes_what_is_served(admin: Admin) -> None:
    running = admin._running
    async with aiohttp.ClientSession() as anybody, anybody.get(f"{running.url}/openapi.json") as answer:
        document = await answer.json()
    OpenAPIV31SpecValidator(document).validate()
    assert sorted(document["paths"]) == [
        "/v1/sessions/{id}/calls",
        "/v1/sessions/{id}/results",
        "/v1/sessions/{id}/tools",
    ]
    for path, item in document["paths"].items():
        verbs = {verb.upper() for verb in item} - {"PARAMETERS"}
        status, _ = await admin.ask("PATCH", path.removeprefix("/v1/sessions/").replace("{id}", "s"))
        assert status == 405
        for verb in verbs:
            assert {"200", "401", "503"} <= item[verb.lower()]["responses"].keys()


async def test_answers_are_what_the_document_says(admin: Admin) -> None:
    running = admin._running
    async with running.session.get(f"{running.url}/openapi.json") as answer:
        document = await answer.json()
    await admin.put({"name": "weather"})
    await admin.capture("c1")
    asked: list[tuple[str, str, Any]] = [
        ("PUT", "tools", {"tools": [{"name": "weather"}]}),
        ("GET", "tools", None),
        ("GET", "calls", None),
        ("POST", "results", {"results": [{"call_id": "c1", "output": "x"}]}),
        ("POST", "results", {"results": [{"call_id": "c1", "output": "x"}]}),
        ("DELETE", "tools", None),
        ("GET", "tools", None),
    ]
    for method, name, body in asked:
        status, said = await admin.ask(method, f"s/{name}", body)
        described = document["paths"][f"/v1/sessions/{{id}}/{name}"][method.lower()]["responses"][str(status)]
        schema = described["content"]["application/json"]["schema"]
        jsonschema.validate(said, {**schema, "components": document["components"]})
