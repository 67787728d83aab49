"""Bad luck upstream, as the real Claude Code sees it."""

from __future__ import annotations

import pytest

from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import NEW, NEW_GEMINI
from tests.e2e.directives import plan, use
from tests.e2e.fake_google import Google

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

RETRY_SOON = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}


def test_short_troubles_are_overcome_before_the_client_notices(claude: Claude, google: Google) -> None:
    google.refuse_next(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")
    google.refuse_next(429, "Resource has been exhausted.", "RESOURCE_EXHAUSTED", [RETRY_SOON])
    run = claude.run(plan(use("Bash", {"command": "echo one"}), use("Bash", {"command": "echo two"}))).check()
    assert google.all_refused()
    assert "Bash returned: two" in run.result
    assert google.sentinels() == 0


@pytest.mark.parametrize("claude", [NEW, NEW_GEMINI], indirect=True, ids=" ".join)
def test_a_full_context_is_compacted_and_the_run_goes_on(claude: Claude, google: Google) -> None:
    """Our words for it are the ones that make the client summarise (1.0.128 cannot)."""
    claude.run(plan(*(use("Bash", {"command": f"echo {number}"}) for number in range(4)))).check()
    google.overflow_next()
    run = claude.run(use("Bash", {"command": "echo after > after.txt"}), "--continue").check()
    assert google.all_refused()
    assert [event.get("subtype") for event in run.events].count("compact_boundary") == 1
    assert (claude.cwd / "after.txt").read_text() == "after\n"
    assert google.sentinels() == 0
