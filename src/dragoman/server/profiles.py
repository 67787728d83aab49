"""The models as Bedrock's control plane lists them, which Claude Code and LangChain read at their start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.dialects.base import Reply
from dragoman.server.converse import Call
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.models import FAMILIES, GEMINI, page_of_names, title
from dragoman.server.pages import read_size

_PAGE, _MOST = 100, 1000
_ARN = "arn:aws:bedrock:us-east-1:000000000000:inference-profile/"
_MODEL_ARN = "arn:aws:bedrock:us-east-1::foundation-model/"
#: Clients derive a model's abilities from the vendor in its id, so every Gemini model has an Anthropic alias.
_CLAUDE = tuple(f"us.anthropic.{name}-v1:0" for name in (*FAMILIES, *(f"claude-{name}" for name in GEMINI)))
_PROFILES = (*_CLAUDE, *GEMINI)


async def inference_profiles(call: Call, outlet: Outlet) -> None:
    name = call.names.get("model", "")
    await _reply(outlet, _profile(name.rpartition("/")[2]) if name else _profiles(call.query))


async def foundation_models(call: Call, outlet: Outlet) -> None:
    name = call.names.get("model", "")
    if name:
        await _reply(outlet, {"modelDetails": _model(name.rpartition("/")[2])})
    else:
        await _reply(outlet, {"modelSummaries": [_model(_model_id(profile)) for profile in _PROFILES]})


def _profiles(query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page; the page token is the id of the previous page's last profile.

    There are no application profiles, which users of Bedrock create themselves.
    """
    if query.get("type") == "APPLICATION":
        return {"inferenceProfileSummaries": []}
    size = read_size(query, "maxResults", _PAGE, _MOST)
    shown, more = page_of_names(_PROFILES, query, "nextToken", size)
    found: dict[str, Any] = {"inferenceProfileSummaries": [_profile(name) for name in shown]}
    return {**found, "nextToken": shown[-1]} if more else found


def _profile(name: str) -> dict[str, Any]:
    return {
        "inferenceProfileId": name,
        "inferenceProfileArn": _ARN + name,
        "inferenceProfileName": title(name.replace(".", "-").replace(":", "-")),
        "models": [{"modelArn": _MODEL_ARN + _model_id(name)}],
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


def _model_id(profile: str) -> str:
    """Return the model id of a profile, which is the profile id without its region prefix."""
    _, vendor, name = profile.rpartition("anthropic.")
    return f"{vendor or 'google.'}{name}"


def _model(name: str) -> dict[str, Any]:
    vendor = name.partition(".")[0]
    return {
        "modelId": name,
        "modelArn": _MODEL_ARN + name,
        "modelName": title(name.partition(".")[2] or name),
        "providerName": title(vendor),
        "inputModalities": ["TEXT", "IMAGE"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "ACTIVE"},
    }


async def _reply(outlet: Outlet, found: dict[str, Any]) -> None:
    await outlet.reply(Reply(200, msgspec.json.encode(found), JSON_HEADERS))
