"""What holds for all tests."""

import pytest

# Modules of the suites that hold assertions and are imported by more than one of them.
pytest.register_assert_rewrite("conformance.lives", "conformance.making", "conformance.model", "conformance.histories")
