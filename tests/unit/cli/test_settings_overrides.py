"""What comes back in the end, whatever launchers and clients did in which order."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.launch.settings_overrides import (
    ABSENT,
    LauncherOverride,
    OverriddenKey,
    add_override,
    apply_changes,
    changed_values,
    effective_value,
    remove_overrides,
)

KEYS = ("api.a", "api.b")
VALUES = st.fixed_dictionaries(
    {"endpoint": st.sampled_from(["http://1", "http://2"]), "region": st.just("x")}
)
OTHERS = st.dictionaries(
    st.sampled_from(["chat.theme", "mcp", "x"]), st.integers(0, 3) | st.booleans() | st.none()
)
#: What a user may have had there: never what a launcher sets.
OWN = (
    st.none()
    | st.sampled_from(["", "https://mine"])
    | st.fixed_dictionaries({"endpoint": st.just("https://mine")})
)
DOCUMENTS = st.builds(
    lambda own, others: {**others, **own}, st.dictionaries(st.sampled_from(KEYS), OWN), OTHERS
)
#: Who comes (with which values), who leaves, who is killed, and what the client saves under other keys meanwhile.
STEPS = st.lists(
    st.tuples(st.just("come"), st.sampled_from("abc"), VALUES)
    | st.tuples(st.sampled_from(["leave", "die"]), st.sampled_from("abc"), st.none())
    | st.tuples(st.just("save"), st.none(), OTHERS),
    max_size=12,
)


class SimulatedLaunchers:
    """A document, the overrides on it, and the running launchers; each step as `apply_overrides` takes it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.loans: dict[str, OverriddenKey] = {}
        self.alive: set[str] = set()

    def come(self, by: str, value: Any) -> None:
        self.alive.add(by)
        for key in KEYS:
            current = self.document.get(key, ABSENT)
            self.loans[key] = add_override(self.loans.get(key, OverriddenKey()), current, by, value)
        self.document = apply_changes(self.document, dict.fromkeys(KEYS, value))

    def settle(self) -> None:
        self.loans = {
            key: remove_overrides(loan, lambda by: by not in self.alive) for key, loan in self.loans.items()
        }
        self.document = apply_changes(self.document, changed_values(self.loans, self.document))
        if not any(loan.claims for loan in self.loans.values()):
            self.loans = {}

    def take(self, kind: str, who: str, what: Any) -> None:
        match kind:
            case "come" if who not in self.alive:
                self.settle()
                self.come(who, what)
            case "leave" if who in self.alive:
                self.alive.discard(who)
                self.settle()
            case "die":
                self.alive.discard(who)
            case "save":
                self.document |= what


@given(DOCUMENTS, STEPS)
def test_after_all_of_it_the_lent_keys_are_as_before_and_the_rest_as_the_client_left_it(
    document: dict[str, Any], steps: list[tuple[str, str, Any]]
) -> None:
    world = SimulatedLaunchers(document)
    for kind, who, what in steps:
        world.take(kind, who, what)
    world.alive.clear()
    world.settle()
    saved = {key: value for kind, _, what in steps if kind == "save" for key, value in what.items()}
    assert world.document == {**document, **saved}
    assert world.loans == {}


@given(DOCUMENTS, STEPS)
def test_while_somebody_is_there_the_latest_of_them_has_the_key(
    document: dict[str, Any], steps: list[tuple[str, str, Any]]
) -> None:
    world = SimulatedLaunchers(document)
    for kind, who, what in steps:
        world.take(kind, who, what)
    world.settle()
    for key, loan in world.loans.items():
        assert loan.claims
        assert {wish.by for wish in loan.claims} <= world.alive
        assert world.document[key] == loan.claims[-1].value


@given(DOCUMENTS, STEPS)
def test_the_ledger_is_the_same_after_a_restart(
    document: dict[str, Any], steps: list[tuple[str, str, Any]]
) -> None:
    world = SimulatedLaunchers(document)
    for kind, who, what in steps:
        world.take(kind, who, what)
    text = msgspec.json.encode(world.loans)
    assert msgspec.json.decode(text, type=dict[str, OverriddenKey]) == world.loans


@given(DOCUMENTS)
def test_apply_keeps_the_order_of_the_document(document: dict[str, Any]) -> None:
    lent = apply_changes(document, {key: {"endpoint": "http://1"} for key in KEYS})
    assert [key for key in lent if key in document] == list(document)
    assert list(apply_changes(lent, {key: document.get(key, ABSENT) for key in KEYS})) == list(document)


def test_what_the_user_sets_meanwhile_is_the_users() -> None:
    loan = add_override(OverriddenKey(), "mine", "a", "ours")
    assert effective_value(remove_overrides(loan, lambda _: True), "new") == "new"
    assert effective_value(remove_overrides(loan, lambda _: True), ABSENT) is ABSENT
    assert effective_value(remove_overrides(loan, lambda _: True), "ours") == "mine"


def test_a_value_of_one_who_left_is_still_known_as_ours() -> None:
    """A client that was started under the first launcher writes its settings back under the second."""
    loan = add_override(add_override(OverriddenKey(), ABSENT, "a", "first"), "first", "b", "second")
    loan = remove_overrides(loan, lambda by: by == "a")
    assert loan.claims == (LauncherOverride(by="b", value="second"),)
    assert effective_value(loan, "first") == "second"
    assert effective_value(remove_overrides(loan, lambda _: True), "first") is ABSENT
