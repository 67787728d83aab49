"""The handlers of Amazon's APIs besides Converse and InvokeModel.

Bedrock's control plane lists the models, which Claude Code and LangChain read at their start. Amazon Q's operations are
chat, the list of models, and the control calls of its clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.dialects.amazonq import control
from dragoman.dialects.base import Reply
from dragoman.gateway.handlers.generate import generate
from dragoman.gateway.handlers.models import (
    CLAUDE_MODELS,
    GEMINI_MODELS,
    display_name,
    encode_models,
    paginate_names,
)
from dragoman.gateway.handlers.pagination import read_page_size
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter

_PAGE, _MAX_PAGE = 100, 1000
_PROFILE_ARN = "arn:aws:bedrock:us-east-1:000000000000:inference-profile/"
_MODEL_ARN = "arn:aws:bedrock:us-east-1::foundation-model/"
#: Clients derive a model's abilities from the vendor in its id, so every Gemini model has an Anthropic alias.
_CLAUDE_PROFILES = tuple(
    f"us.anthropic.{name}-v1:0" for name in (*CLAUDE_MODELS, *(f"claude-{name}" for name in GEMINI_MODELS))
)
_PROFILES = (*_CLAUDE_PROFILES, *GEMINI_MODELS)


async def list_inference_profiles(request: RequestContext, response: ResponseWriter) -> None:
    name = request.path_params.get("model", "")
    await _reply(
        response, _encode_profile(name.rpartition("/")[2]) if name else _encode_profiles(request.query)
    )


async def list_foundation_models(request: RequestContext, response: ResponseWriter) -> None:
    name = request.path_params.get("model", "")
    if name:
        await _reply(response, {"modelDetails": _encode_model(name.rpartition("/")[2])})
    else:
        await _reply(
            response, {"modelSummaries": [_encode_model(_model_id(profile)) for profile in _PROFILES]}
        )


def _encode_profiles(query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page; the page token is the id of the previous page's last profile.

    There are no application profiles, which users of Bedrock create themselves.
    """
    if query.get("type") == "APPLICATION":
        return {"inferenceProfileSummaries": []}
    size = read_page_size(query, "maxResults", _PAGE, _MAX_PAGE)
    page, has_more = paginate_names(_PROFILES, query, "nextToken", size)
    body: dict[str, Any] = {"inferenceProfileSummaries": [_encode_profile(name) for name in page]}
    return {**body, "nextToken": page[-1]} if has_more else body


def _encode_profile(name: str) -> dict[str, Any]:
    return {
        "inferenceProfileId": name,
        "inferenceProfileArn": _PROFILE_ARN + name,
        "inferenceProfileName": display_name(name.replace(".", "-").replace(":", "-")),
        "models": [{"modelArn": _MODEL_ARN + _model_id(name)}],
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


def _model_id(profile: str) -> str:
    """Return the model id of a profile, which is the profile id without its region prefix."""
    _, vendor, name = profile.rpartition("anthropic.")
    return f"{vendor or 'google.'}{name}"


def _encode_model(name: str) -> dict[str, Any]:
    vendor = name.partition(".")[0]
    return {
        "modelId": name,
        "modelArn": _MODEL_ARN + name,
        "modelName": display_name(name.partition(".")[2] or name),
        "providerName": display_name(vendor),
        "inputModalities": ["TEXT", "IMAGE"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "ACTIVE"},
    }


async def _reply(response: ResponseWriter, body: dict[str, Any]) -> None:
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def run_amazonq_operation(request: RequestContext, response: ResponseWriter) -> None:
    """Dispatch by the name of the operation, which is in the x-amz-target header or in the path."""
    operation = control.operation_of(request.path_params["operation"])
    if operation in control.CHATS:
        await generate(request, response)
        return
    if operation == control.MODELS:
        body = encode_models(request.dialect.name, request.gateway.config.models, request.query)
    else:
        body = control.answer(operation, request.body)
    await response.reply(Reply(200, body, JSON_HEADERS))
