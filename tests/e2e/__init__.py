"""Real programs over real HTTP: the vendor's SDK and Claude Code in front of `dragoman serve`."""

import pytest

pytest.register_assert_rewrite("tests.e2e.clients", "tests.e2e.sdk_rounds")
