"""Tool names: legal ones stay, the others lead back."""

from __future__ import annotations

import pytest

from dragoman.schema import NameMap

LONG = "mcp__plugin_a_very_long_server_name__and_a_tool_whose_name_goes_on_and_on_for_91_characters"


@pytest.mark.parametrize("name", ["mcp__context7__query-docs", "ns.tool", "ns:tool", "_x", "A1", "a" * 64])
def test_b13_legal_names_are_untouched(name: str) -> None:
    """known problem B13"""
    names = NameMap.of([name])
    assert names.to_wire(name) == name
    assert names.from_wire(name) == name
    assert names.renamed == ()


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("read/file", "read_file_9cc468c6"),
        ("1mcp", "_1mcp_"),
        ("a b", "a_b_"),
        ("-x", "_-x_"),
        ("", "__"),
        ("日本", "___"),
        (LONG, LONG[:55] + "_"),
        ("\ud83d", "__"),
    ],
)
def test_b13_illegal_names_become_legal_and_lead_back(name: str, wire: str) -> None:
    """known problem B13"""
    names = NameMap.of(["other", name])
    assert names.to_wire(name).startswith(wire)
    assert len(names.to_wire(name)) <= 64
    assert names.from_wire(names.to_wire(name)) == name
    assert names.renamed == ((name, names.to_wire(name)),)


def test_b13_a_name_taken_by_a_legal_one_moves_on() -> None:
    """known problem B13"""
    taken = NameMap.of(["read/file"]).to_wire("read/file")
    names = NameMap.of(["read/file", "read_file", taken])
    wires = [names.to_wire(name) for name in ("read/file", "read_file", taken)]
    assert wires[1:] == ["read_file", taken]
    assert len(set(wires)) == 3
    assert [names.from_wire(wire) for wire in wires] == ["read/file", "read_file", taken]


def test_b13_a_name_of_the_history_is_mapped_alike() -> None:
    """known problem B13"""
    assert NameMap.of([]).to_wire("read_file") == "read_file"
    assert NameMap.of([]).to_wire("read/file") == NameMap.of(["read/file"]).to_wire("read/file")


@pytest.mark.parametrize("prefix", ["default_api.", "default_api:", "functions."])
def test_p4_a_made_up_prefix_is_stripped_when_the_bare_name_is_known(prefix: str) -> None:
    """known problem P4"""
    names = NameMap.of(["Read", "read/file"])
    assert names.from_wire(prefix + "Read") == "Read"
    assert names.from_wire(prefix + "read/file") == "read/file"
    assert names.from_wire(prefix + names.to_wire("read/file")) == "read/file"
    assert names.from_wire(prefix + "Write") == prefix + "Write"


def test_p4_a_tool_that_is_really_called_so_keeps_its_name() -> None:
    """known problem P4"""
    assert NameMap.of(["functions.exec", "exec"]).from_wire("functions.exec") == "functions.exec"
    assert NameMap.of(["exec"]).from_wire("unknown") == "unknown"
