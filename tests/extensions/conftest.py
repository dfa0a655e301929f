"""A home, a project, a model server, and commands that are echoes, as the black-box tests have them."""

from blackbox.conftest import (
    echoed,
    gate,
    place,
    pytest_generate_tests,
    pytest_pyfunc_call,
    serve,
)

__all__ = ["echoed", "gate", "place", "pytest_generate_tests", "pytest_pyfunc_call", "serve"]
