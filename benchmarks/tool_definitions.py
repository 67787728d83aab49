"""Tool definitions with the shapes, sizes and keywords of a coding agent's tools."""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]

_SENTENCES = (
    "Use this tool when you already know the exact path; otherwise search first.",
    "The path must be absolute, not relative to the working directory.",
    "Results are returned with line numbers that start at 1, in the format of `cat -n`.",
    "It is always better to run several independent calls in one message than one after the other.",
    "NEVER use this to create documentation files unless the user asks for them explicitly.",
    "Lines longer than 2000 characters are cut, and the output is limited to 30000 characters.",
    "If the call fails, read the error, correct the arguments and try again; do not repeat it unchanged.",
    "You can optionally give a timeout in milliseconds (up to 600000 ms, that is 10 minutes).",
    "Before you edit a file you must have read it at least once in this conversation.",
    '- Quote paths with spaces: cd "/Users/name/My Documents" works, cd /Users/name/My Documents does not.',
    "When the user asks for a review, look at the whole diff against the base branch (`git diff main...HEAD`).",
    "The match is made with ripgrep: literal braces need escaping (use `interface\\{\\}` for `interface{}`).",
    "Returns matching paths sorted by modification time, newest first.",
    "Do not mention this tool to the user; simply use it when it helps.",
    "<example>\nuser: Where are errors from the client handled?\nassistant: [searches, then reads]\n</example>",
)


def _string(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _number(description: str, **more: Any) -> Schema:
    return {"type": "number", "description": description, **more}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "default": False, "description": description}


def _array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _object(required: str, **properties: Schema) -> Schema:
    wanted = required.split()
    named = {name.replace("__", "-"): schema for name, schema in properties.items()}
    return {"type": "object", "properties": named, "required": wanted, "additionalProperties": False}


_PATH = _string("The absolute path to the file")
_STATUS = _string("Where it stands", enum=["pending", "in_progress", "completed"])
_EDIT = _object(
    "old_string new_string",
    old_string=_string("The text to replace"),
    new_string=_string("The text to replace it with (must be different from old_string)"),
    replace_all=_flag("Replace all occurrences of old_string (default false)"),
)
_OPTION = _object(
    "label description",
    label=_string("What the user sees and chooses; 1 to 5 words"),
    description=_string("What choosing this means, with its trade-offs"),
    preview=_string("Shown when the option has the focus: a mock-up, code, a diagram"),
)
_QUESTION = _object(
    "question header options multiSelect",
    question=_string("The whole question, clear and specific, with a question mark"),
    header=_string("A very short label, at most 12 characters"),
    options=_array(_OPTION, minItems=2, maxItems=4),
    multiSelect=_flag("Whether several options may be chosen"),
)
_GREP = _object(
    "pattern",
    pattern=_string("The regular expression to search for in file contents"),
    path=_string("File or directory to search in (rg PATH). Defaults to the working directory."),
    glob=_string('Glob pattern to filter files (e.g. "*.js", "*.{ts,tsx}")'),
    output_mode=_string("What to give out", enum=["content", "files_with_matches", "count"]),
    __A=_number("Number of lines to show after each match (rg -A)"),
    __B=_number("Number of lines to show before each match (rg -B)"),
    __n=_flag("Show line numbers in output (rg -n)"),
    type=_string("File type to search (rg --type): js, py, rust, go, java"),
    head_limit=_number("Limit output to the first N entries", minimum=0),
    multiline=_flag("Let . match newlines and patterns span lines"),
)
_ISSUE = _object(
    "owner repo title",
    owner=_string("Repository owner", minLength=1, maxLength=39, pattern="^[A-Za-z0-9-]+$"),
    repo=_string("Repository name", minLength=1),
    title=_string("Title of the issue"),
    body={"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Markdown", "default": None},
    labels=_array({"type": "string"}, uniqueItems=True),
    milestone={"type": ["integer", "null"], "exclusiveMinimum": 0},
)

SCHEMAS: dict[str, Schema] = {
    "Agent": _object(
        "description prompt",
        description=_string("A short (3-5 word) description of the task"),
        prompt=_string("The task for the agent to perform"),
        subagent_type=_string("The type of specialised agent to use for this task"),
        model=_string("Optional model for this agent", enum=["sonnet", "opus", "haiku"]),
        run_in_background=_flag("Run it in the background; you are told when it ends"),
    ),
    "AskUserQuestion": _object("questions", questions=_array(_QUESTION, minItems=1, maxItems=4)),
    "Bash": _object(
        "command",
        command=_string("The command to execute"),
        timeout=_number("Optional timeout in milliseconds (max 600000)", maximum=600000),
        description=_string("What this command does, in active voice and 5-10 words"),
        run_in_background=_flag("Run this command in the background; read the output later"),
    ),
    "BashOutput": _object("bash_id", bash_id=_string("The ID of the shell"), filter=_string("A regex")),
    "CronCreate": _object(
        "cron prompt",
        cron=_string("Standard 5-field cron expression in local time: M H DoM Mon DoW"),
        prompt=_string("The prompt to enqueue at each fire time"),
        recurring=_flag("true: every match; false: once, then deleted"),
    ),
    "Edit": _object("file_path old_string new_string", file_path=_PATH, **_EDIT["properties"]),
    "EnterPlanMode": _object(""),
    "ExitPlanMode": _object("plan", plan=_string("The plan to show to the user, in Markdown")),
    "Glob": _object("pattern", pattern=_string("The glob pattern"), path=_string("Where to search")),
    "Grep": _GREP,
    "KillShell": _object("shell_id", shell_id=_string("The ID of the background shell to kill")),
    "MultiEdit": _object("file_path edits", file_path=_PATH, edits=_array(_EDIT, minItems=1)),
    "NotebookEdit": _object(
        "notebook_path new_source",
        notebook_path=_PATH,
        cell_id=_string("The ID of the cell to edit"),
        new_source=_string("The new source for the cell"),
        cell_type=_string("The type of the cell", enum=["code", "markdown"]),
        edit_mode=_string("The type of edit", enum=["replace", "insert", "delete"]),
    ),
    "Read": _object(
        "file_path",
        file_path=_PATH,
        offset={"type": "integer", "minimum": 0, "description": "The line number to start from"},
        limit={"type": "integer", "exclusiveMinimum": 0, "description": "How many lines to read"},
        pages=_string('Page range for PDF files (e.g. "1-5")'),
    ),
    "Skill": _object("skill", skill=_string("The name of the skill"), args=_string("Its arguments")),
    "SlashCommand": _object("command", command=_string("The slash command with its arguments")),
    "TaskCreate": _object(
        "subject description",
        subject=_string("A brief title for the task"),
        description=_string("What needs to be done"),
        metadata={"type": "object", "additionalProperties": {}, "propertyNames": {"type": "string"}},
    ),
    "TaskUpdate": _object(
        "taskId",
        taskId=_string("The ID of the task"),
        status={"anyOf": [_STATUS, {"type": "string", "const": "deleted"}]},
        addBlocks=_array({"type": "string"}),
    ),
    "TodoWrite": _object(
        "todos",
        todos=_array(
            _object(
                "content status activeForm",
                content={"type": "string", "minLength": 1},
                status=_STATUS,
                activeForm={"type": "string", "minLength": 1},
            )
        ),
    ),
    "ToolSearch": _object("query", query=_string("What to find"), max_results=_number("At most", default=5)),
    "WebFetch": _object(
        "url prompt", url=_string("Where from", format="uri"), prompt=_string("What to look for in it")
    ),
    "WebSearch": _object(
        "query",
        query=_string("The search query to use", minLength=2),
        allowed_domains=_array({"type": "string"}, description="Only these domains"),
        blocked_domains=_array({"type": "string"}, description="Never these domains"),
    ),
    "Write": _object("file_path content", file_path=_PATH, content=_string("What to write")),
    "mcp__github__create_issue": _ISSUE,
    "mcp__github__search_code": _object(
        "q", q=_string("The query"), per_page={"type": "integer", "minimum": 1, "maximum": 100, "default": 30}
    ),
}


def define_tools(total_bytes: int, seed: str) -> list[dict[str, Any]]:
    """Return all tools, with descriptions so long that they have about `total_bytes`."""
    each = max(80, (total_bytes - 12_500) // len(SCHEMAS))
    return [
        {"name": name, "description": write_prose(each, f"{seed}{name}"), "input_schema": _dated(schema)}
        for name, schema in SCHEMAS.items()
    ]


def _dated(schema: Schema) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_prose(size: int, seed: str) -> str:
    """Return text of about `size` characters, the same for the same seed."""
    chance = random.Random(seed)
    lines: list[str] = []
    while size > 0:
        lines.append(chance.choice(_SENTENCES))
        size -= len(lines[-1]) + 1
    return "\n".join(lines)
