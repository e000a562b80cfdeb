"""Runs the tests that need torch, by pytest, where both are; else says so and exits with 77, which ctest shows as a skip. Tests that
pytest skips are named. Those that take minutes are shortened: pytest alone runs them at length (docs/python.md)."""

import importlib.util
import os
import sys

missing = [name for name in ("torch", "pytest") if importlib.util.find_spec(name) is None]
if missing:
    print(f"SKIPPED: {sys.executable} has no {' and no '.join(missing)}: pip install torch pytest numpy")
    sys.exit(77)

import pytest  # noqa: E402

os.environ.setdefault("WEFT_TEST_BUFFERS", "100")
here = os.path.dirname(os.path.abspath(__file__))
without = [os.path.join(here, name) for name in ("test_world.py", "test_numpy.py")]  # tests of their own
sys.exit(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", *(f"--ignore={path}" for path in without), *(sys.argv[1:] or [here])]))
