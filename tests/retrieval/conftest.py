"""The made-up graph that the tests of the tools use."""

from tests.tools.conftest import corpus, kg, made, pair  # noqa: F401
