"""A home, a project, a model server, as the black-box tests have them, and their commands that are echoes."""

from blackbox.conftest import (
    echoed,
    gate,
    place,
    pytest_generate_tests,
    pytest_pyfunc_call,
    serve,
)

__all__ = ["echoed", "gate", "place", "pytest_generate_tests", "pytest_pyfunc_call", "serve"]
