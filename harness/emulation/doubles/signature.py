"""Functions with exactly the parameters of a vendor build, whose body gets the bound arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

Arguments = Mapping[str, Any]
"""Parameter name -> value, defaults applied."""


def parameters(required: str, **defaults: Any) -> list[inspect.Parameter]:
    """Build a parameter list: the required names (separated by blanks), then those with a default, in order."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    plain = [inspect.Parameter(name, kind) for name in required.split()]
    return plain + [inspect.Parameter(name, kind, default=value) for name, value in defaults.items()]


def vendor_function(
    module: str, name: str, params: list[inspect.Parameter], body: Callable[[Arguments], Any]
) -> Callable[..., Any]:
    """Return a function called `name` that takes `params` and nothing else: TypeError otherwise, in Python's words."""
    signature = inspect.Signature(params)

    def function(*args: Any, **keywords: Any) -> Any:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            msg = f"{name}() {error}"
            raise TypeError(msg) from None
        bound.apply_defaults()
        return body(bound.arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    vars(function)["__signature__"] = signature
    return function
