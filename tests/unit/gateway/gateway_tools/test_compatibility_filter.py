"""Which requests get tools that their client did not ask for, and in which form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.dialects.base import Target
from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.providers import restrict_offer
from dragoman.ir import Message, OutputFormat, Request, Text, Tool, ToolCall, ToolChoice

OLD, NEW = Target(model="gemini-2.5-flash"), Target(model="gemini-3.8-flash")
VERTEX = Target(model="gemini-3.8-flash", backend="vertex")
SEARCH, COMPUTER = ("tools", b'{"googleSearch":{}}'), ("tools", b'{"computerUse":{}}')
FLAG = ("toolConfig.includeServerSideToolInvocations", b"true")
FORCED = ToolChoice(mode="any")


class Ours:
    tool = Tool(name="ours")

    async def run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        raise NotImplementedError


OFFER = ToolOffer(tools=(Ours(),), tool_choice=FORCED)


def ask(*native: tuple[str, bytes], **more: Any) -> Request:
    words = Message(role="user", parts=(Text(text="q"),))
    return Request(model="m", messages=(words,), native=native, **more)


@pytest.mark.parametrize(
    ("request_", "target", "why"),
    [
        (ask(("cachedContent", b'"c"')), NEW, "cache"),
        (ask(SEARCH), OLD, "Google's own tools"),
        (ask(SEARCH), VERTEX, "Google's own tools"),
        (ask(output=OutputFormat()), OLD, "JSON output"),
        (ask(("generationConfig.responseMimeType", b'"application/json"')), OLD, "JSON output"),
    ],
)
def test_they_wait_where_google_would_refuse_the_request(request_: Request, target: Target, why: str) -> None:
    fitted = restrict_offer(OFFER, request_, target)
    assert (fitted.tools, fitted.tool_choice, fitted.native_fields) == ((), None, ())
    (note,) = fitted.notes
    assert (note.kind, note.where) == ("withheld", "tools")
    assert why in note.why


@pytest.mark.parametrize("target", [OLD, NEW, VERTEX])
@pytest.mark.parametrize(
    "request_",
    [ask(), ask(COMPUTER), ask(("generationConfig.responseMimeType", b'"text/plain"'))],
)
def test_everywhere_else_they_are_offered_as_they_are(request_: Request, target: Target) -> None:
    assert restrict_offer(OFFER, request_, target) is OFFER


def test_what_goes_with_googles_own_tools_says_so_once() -> None:
    assert restrict_offer(OFFER, ask(SEARCH), NEW).native_fields == (FLAG,)
    assert restrict_offer(OFFER, ask(SEARCH, FLAG), NEW) is OFFER


def test_a_session_without_the_clients_tools_has_no_quarrel_with_them() -> None:
    alone = msgspec.structs.replace(OFFER, keep_client_tools=False)
    assert restrict_offer(alone, ask(SEARCH), OLD) is alone


def test_an_answer_in_json_is_no_forced_call() -> None:
    fitted = restrict_offer(OFFER, ask(output=OutputFormat()), NEW)
    assert (fitted.tools, fitted.tool_choice) == (OFFER.tools, None)


def test_a_client_with_functions_of_its_own_is_refused_or_not_as_before() -> None:
    theirs = (Tool(name="theirs"),)
    assert restrict_offer(OFFER, ask(SEARCH, tools=theirs), OLD) is OFFER
    assert restrict_offer(OFFER, ask(output=OutputFormat(), tools=theirs), OLD).tools == OFFER.tools
