"""The handler of Amazon Q's operations: chat, the list of models, and the control calls of its clients."""

from __future__ import annotations

from dragoman.dialects.amazonq import control
from dragoman.dialects.base import Reply
from dragoman.server.converse import RequestContext, generate
from dragoman.server.http import JSON_HEADERS, ResponseWriter
from dragoman.server.models import list_models


async def run_amazonq_operation(call: RequestContext, outlet: ResponseWriter) -> None:
    """Dispatch by the name of the operation, which is in the x-amz-target header or in the path."""
    operation = control.operation_of(call.path_params["operation"])
    if operation in control.CHATS:
        await generate(call, outlet)
        return
    if operation == control.MODELS:
        body = list_models(call.dialect.name, call.gateway.config.models, call.query)
    else:
        body = control.answer(operation, call.body)
    await outlet.reply(Reply(200, body, JSON_HEADERS))
