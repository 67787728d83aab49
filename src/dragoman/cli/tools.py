"""`dragoman tools list|call`: the tools of the agent, without a model."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoman.agent.toolbox import Toolbox, open_toolbox
from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import (
    Settings,
    add_config_flag,
    make_state_folder,
    print_setting_notes,
    read_settings,
)
from dragoman.cli.terminal import (
    STARTING_TOOLS,
    CommandError,
    enter_with_spinner,
    paint,
    print_error,
    print_note,
    print_result,
    print_status,
)
from dragoman.ids import new_id
from dragoman.ir import Media, ToolCall
from dragoman.tools import Context, ExecutionResult, Outcome, ToolDefinition, result_text

REFUSED, FAILED = 3, 4
_CODES: dict[Outcome, int] = {"ok": 0, "refused": REFUSED, "unknown": 2}
_MCP = "mcp__"

_EXAMPLES = """\
examples:
  dragoman tools list
  dragoman tools list --json | jq '.[].schema'
  dragoman tools call read_file '{"path": "README.md"}'
  dragoman tools call write_file '{"path": "a.txt", "content": "hi"}' --root ~/project
  echo '{"path": "."}' | dragoman tools call list_files -

Your own tools are Python files in the folder tools of the state folder; docs/tools.md shows one."""


class _AlwaysApprove:
    """Approve every call: the user typed it. Deny rules still apply."""

    async def approve(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, preview: str
    ) -> Any:
        del definition, args, context, preview
        return "once"


def run(argv: list[str]) -> int:
    """List the tools, or run one."""
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    root = Path(args.root).expanduser().absolute()
    if not root.is_dir():
        raise CommandError(f"{root} is not a folder", code=2)
    return asyncio.run(_list(args, settings, root) if args.verb == "list" else _call(args, settings, root))


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "tools",
        "List the agent's tools, or run one.",
        _EXAMPLES,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|call")
    listing = verbs.add_parser("list", help="show name, risk and description of every tool")
    call = verbs.add_parser("call", help="run one tool")
    call.add_argument("name", metavar="NAME", help="the tool")
    call.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help="its arguments; - for stdin")
    call.add_argument("--read-only", action="store_true", help="refuse tools that could change something")
    for verb in (listing, call):
        verb.add_argument("--root", metavar="DIR", default=".", help="the project (default: this folder)")
        verb.add_argument("--json", action="store_true", help="print JSON")
        add_config_flag(verb)
    return parser


async def _list(args: argparse.Namespace, settings: Settings, root: Path) -> int:
    config = settings.config
    tools = open_toolbox(
        root=root, home=make_state_folder(settings.home), settings=config.tools, servers=config.mcp.servers
    )
    async with enter_with_spinner(STARTING_TOOLS, tools) as toolbox:
        _tell(toolbox)
        definitions = sorted(toolbox.registry, key=lambda definition: definition.name)
        print_result(_as_json(definitions) if args.json else _as_table(definitions))
    return 0


async def _call(args: argparse.Namespace, settings: Settings, root: Path) -> int:
    config = settings.config
    call = ToolCall(id=f"call_{new_id()}", name=args.name, args=_arguments(args.arguments))
    tools = open_toolbox(
        root=root,
        home=make_state_folder(settings.home),
        settings=config.tools,
        servers=config.mcp.servers if args.name.startswith(_MCP) else {},
        mode="read_only" if args.read_only else "normal",
        approver=_AlwaysApprove(),
        strict=config.strict_tool_validation,
    )
    async with enter_with_spinner(STARTING_TOOLS, tools) as toolbox:
        _tell(toolbox)
        context = Context(session="tools call", caller="command line", progress=print_status)
        execution = await toolbox.handler.run(call, context)
    for note in execution.notes:
        print_note(str(note))
    return _answer(execution, as_json=args.json)


def _tell(toolbox: Toolbox) -> None:
    for line in toolbox.warnings:
        print_note(line)


def _arguments(given: str) -> bytes:
    text = sys.stdin.read() if given == "-" else given
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandError(f"the arguments are not a JSON object: {error}", code=2) from None
    return text.encode()


def _answer(execution: ExecutionResult, *, as_json: bool) -> int:
    result = execution.result
    code = _CODES.get(execution.outcome, FAILED)
    if as_json:
        value: dict[str, Any] = {
            "outcome": execution.outcome,
            "text": result_text(result),
            "response": msgspec.Raw(result.response or b"null"),
            "files": [part.mime for part in result.content if isinstance(part, Media)],
            "seconds": round(execution.duration_s, 3),
        }
        print_result(msgspec.json.encode(value).decode())
    elif code:
        print_error(CommandError(result_text(result)))
    else:
        print_result(result_text(result))
    return code


def _as_json(definitions: list[ToolDefinition]) -> str:
    rows = [
        {
            "name": one.name,
            "risk": one.risk,
            "description": one.description,
            "schema": msgspec.Raw(one.schema),
        }
        for one in definitions
    ]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()


def _as_table(definitions: list[ToolDefinition]) -> str:
    width = max((len(one.name) for one in definitions), default=4)
    head = paint(f"{'name':<{width}}  {'risk':<5}  description", "bold", sys.stdout)
    rows = [f"{one.name:<{width}}  {one.risk:<5}  {_first_line(one.description)}" for one in definitions]
    return "\n".join([head, *rows])


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
