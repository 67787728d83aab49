"""Model facts: the documented table, prefixes of paths, and names from the future."""

from __future__ import annotations

import pytest

from dragoman.dialects.gemini import profile_of
from dragoman.dialects.gemini.models import ModelProfile

#: model -> ids, signatures, media in results, ends with user, JSON beside functions
DOCUMENTED = {
    "gemini-2.5-pro": (False, False, False, False, False),
    "gemini-2.5-flash": (False, False, False, False, False),
    "gemini-2.5-flash-lite": (False, False, False, False, False),
    "gemini-3-flash-preview": (True, True, True, False, True),
    "gemini-3.1-pro-preview": (True, True, True, False, True),
    "gemini-3.1-flash-lite": (True, True, True, False, True),
    "gemini-3.5-flash": (True, True, True, False, True),
    "gemini-3.5-flash-lite": (True, True, True, True, True),
    "gemini-3.6-flash": (True, True, True, True, True),
    "gemini-3.7-flash": (True, True, True, True, True),
    "gemini-3.8-flash": (True, True, True, True, True),
    "gemini-4-argon": (True, True, True, True, True),
    "gemini-4-carbon": (True, True, True, True, True),
    "gemma-4-31b-it": (True, True, True, False, True),
}


@pytest.mark.parametrize(("model", "facts"), DOCUMENTED.items())
def test_the_facts_of_the_sheet(model: str, facts: tuple[bool, ...]) -> None:
    profile = profile_of(model)
    assert facts == (
        profile.call_ids,
        profile.signatures,
        profile.media_in_results,
        profile.ends_with_user,
        profile.json_with_functions,
    )


@pytest.mark.parametrize("model", DOCUMENTED)
def test_limits(model: str) -> None:
    profile = profile_of(model)
    gemma = model.startswith("gemma")
    assert (profile.input_tokens, profile.output_tokens) == (
        (262_144, 32_768) if gemma else (1_048_576, 65_536)
    )


@pytest.mark.parametrize("model", DOCUMENTED)
@pytest.mark.parametrize("prefix", ["models/", "publishers/google/models/", "google/"])
def test_a_path_before_the_name_changes_nothing(model: str, prefix: str) -> None:
    assert profile_of(prefix + model) == profile_of(model)


def newest(model: str) -> ModelProfile:
    import msgspec

    return msgspec.structs.replace(profile_of(model), family="any")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gemini-3.9-flash", "g3"),
        ("gemini-3.10-pro", "g3"),
        ("gemini-3.85-flash", "g3"),
        ("gemini-4.5-xenon", "g4"),
        ("gemini-5-neon", "g5"),
        ("gemini-12", "g12"),
        ("gemini-flash-latest", "g3"),
        ("gemini-pro-latest", "g3"),
        ("tunedModels/mine", "g3"),
        ("endpoints/12345", "g3"),
        ("", "g3"),
    ],
)
def test_m1_an_unknown_name_behaves_like_the_newest_and_signs_for_itself(model: str, family: str) -> None:
    assert newest(model) == newest("gemini-3.8-flash")
    assert profile_of(model).family == family
