"""Ray, as the driver uses it: a library without types, and large, so it is imported here alone."""

from importlib import import_module
from typing import Any

ray: Any = import_module("ray")
faults: Any = import_module("ray.exceptions")
