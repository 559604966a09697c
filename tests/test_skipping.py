"""Tests that cannot run here say so, and fail where everything has to run."""

import pytest

from skipping import REQUIRE_ALL, skip


def test_what_cannot_run_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(REQUIRE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match="NOT TESTED: no such tool"):
        skip("no such tool")


def test_what_cannot_run_fails_where_everything_has_to_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(REQUIRE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match="no such tool"):
        skip("no such tool")
