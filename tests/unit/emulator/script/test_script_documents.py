"""The page about scripts and the JSON Schema are made from the types and cannot drift from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from dragoman.emulator.script.load import load_text
from dragoman.emulator.script.model import TABLES, describe, script_schema
from tests.unit.emulator.documentation import DOCS, blocks, check_or_bless, check_or_bless_section
from tests.unit.emulator.script.test_script_errors import GOOD

pytest_plugins = ["pytester"]

PAGE = DOCS / "emulator-scripts.md"
SCHEMA = DOCS / "emulator-script.schema.json"


def test_the_schema_file_is_the_code() -> None:
    check_or_bless(SCHEMA, json.dumps(script_schema(), indent=2, ensure_ascii=False) + "\n")


def test_the_tables_of_keys_are_the_code() -> None:
    tables = [
        "\n".join([f"### {place}", "", table.__doc__ or "", "", "| key | |", "|---|---|", *_rows(table), ""])
        for place, table in TABLES.items()
    ]
    check_or_bless_section(PAGE, "keys", "\n".join(tables))


def _rows(table: type[msgspec.Struct]) -> list[str]:
    return [f"| `{key}` | {about} |" for key, about in describe(table)]


def test_every_key_is_explained() -> None:
    assert [(table, key) for table in TABLES.values() for key, about in describe(table) if not about] == []


def test_the_scripts_of_the_page_are_scripts_by_loader_and_by_schema() -> None:
    scripts = [text for _, text in blocks(PAGE, "yaml")]
    assert len(scripts) >= 2
    for text in (*scripts, GOOD):
        load_text(text)
        jsonschema.validate(yaml.safe_load(text), script_schema())


def test_the_schema_refuses_what_the_loader_refuses() -> None:
    wrong: list[Any] = [{"stesp": []}, {"steps": [{"times": 0}]}, {"steps": [{"when": {"sayz": "x"}}]}]
    for script in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(script, script_schema())


def write_files(folder: Path, said: str) -> None:
    files = [(name, text) for language in ("yaml", "python") for name, text in blocks(PAGE, language) if name]
    assert {name for name, _ in files} == {"umbrella.yaml", "agent.py", "test_agent.py"}
    for name, text in files:
        (folder / name).write_text(text.replace("Be polite.", said))


def test_a_stranger_can_do_what_the_page_says(pytester: pytest.Pytester) -> None:
    write_files(pytester.path, "Be polite.")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=5)


def test_the_report_of_a_failed_test_is_what_the_page_shows(pytester: pytest.Pytester) -> None:
    write_files(pytester.path, "Be quick.")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "by_script")
    [(_, report)] = blocks(PAGE, "text")
    assert report in result.stdout.str() + "\n"


def test_the_other_python_of_the_page_runs() -> None:
    rest = [text for name, text in blocks(PAGE, "python") if not name]
    assert len(rest) == 1
    exec(compile(rest[0], PAGE.name, "exec"), {})
