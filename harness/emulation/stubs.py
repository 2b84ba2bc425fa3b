"""Stand-ins for packages that the platform would have and this machine lacks. They never invent a value.

While a SUT module is being executed (loading.py) a stand-in may be what module-level code needs: something to
decorate with, to derive from, to annotate with, to call for another stand-in. At any other time a call, an operator, a
truth value raises StubCalled, which says what was used, who imported it and what to do.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType, FunctionType, GenericAlias, ModuleType, NoneType, UnionType
from typing import Any, Final, NoReturn

from harness.emulation.loading import executing
from harness.errors import CannotAsk, EmulationGap, StubCalled


class StubLog:
    """Which packages were stood in for, and which modules of the SUT imported them."""

    def __init__(self) -> None:
        self._importers: defaultdict[str, set[str]] = defaultdict(set)

    def record(self, package: str, importer: str) -> None:
        """Note that `importer` imported the top-level `package`."""
        self._importers[package].add(importer)

    def names(self) -> list[str]:
        """Top-level packages that have a stand-in in this process."""
        return sorted(self._importers)

    def importers(self, package: str) -> list[str]:
        """Modules of the SUT that imported it."""
        return sorted(self._importers.get(package, ()))


@dataclass(frozen=True, slots=True)
class Origin:
    """The package a stand-in belongs to. A `vendor` package has the platform's hardware behind it.

    `markers`: functions whose result module-level code gives to something that needs to know its type, with that type:
    "str" or "bytes" (it gets a text that says what it is), or "object" (it equals no string and no number).
    """

    package: str
    distribution: str
    log: StubLog
    vendor: bool = False
    markers: Mapping[str, str] = field(default_factory=dict)

    def refusal(self, name: str, use: str) -> CannotAsk:
        """Build the error for using the stand-in `name` in the way `use` says."""
        importers = self.log.importers(self.package)
        by = ", ".join(importers[:3]) + (", …" if importers[3:] else "") if importers else "nobody yet"
        where = f"the emulated platform has {self.package}, this machine has not (imported by {by})"
        if self.vendor:
            remedy = "poolparity models no value for it: run this case on the hardware, or add a double"
            return EmulationGap(f"{name} was {use}; it is a stand-in: {where}; {remedy}")
        remedy = f"install {self.distribution} here, or avoid that code in the case"
        return StubCalled(f"{name} was {use}; it is a stand-in: {where}; {remedy}")


class _StubMeta(ABCMeta):
    """Answers a class attribute that only the real base would have. An ABCMeta, so that ABC can be a second base."""

    def __getattr__(cls, name: str) -> Stub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        stand_in: Stub = type.__getattribute__(cls, "stand_in_")
        return getattr(stand_in, name)  # type: ignore[no-any-return]  # Stub.__getattr__


class StubBase(metaclass=_StubMeta):
    """What a class gets as base in place of a stand-in. It can be derived from, and not instantiated."""

    stand_in_: Stub

    def __new__(cls, *_args: object, **_keywords: object) -> Any:
        """Make no instance: half of the class's behaviour is not here."""
        return _result(cls.stand_in_, f"instantiated (as a base of {cls.__qualname__})")

    def __init_subclass__(cls, **_keywords: object) -> None:
        """Accept class keywords, which only the real base understands."""
        super().__init_subclass__()

    @classmethod
    def __get_pydantic_core_schema__(cls, *_arguments: object) -> dict[str, Any]:
        return _refusing_schema(cls.stand_in_)


class Stub:
    """A stand-in for one name of a package; with `wrapped`, for the function that it decorates."""

    def __init__(self, name: str, origin: Origin, wrapped: Callable[..., Any] | None = None) -> None:
        self._stand_in_name = name
        self._stand_in_origin = origin
        if wrapped is not None:
            self.__wrapped__ = wrapped
            for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
                self.__dict__[attribute] = getattr(wrapped, attribute, None)

    def __repr__(self) -> str:
        return f"<stand-in for {self._stand_in_name}>"

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        child = self.__dict__[name] = Stub(f"{self._stand_in_name}.{name}", self._stand_in_origin)
        return child

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Decorate, or stand in for the result, while modules load; refuse at any other time."""
        result = _result(self, "called")
        if len(args) == 1 and not keywords and _is_decoration(args[0], sys._getframe(1)):  # noqa: SLF001 - the caller
            return _decorated(self, args[0])
        return _typed(self, result)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        base = self.__dict__.get("_stand_in_base")
        if base is None:
            name = self._stand_in_name.rpartition(".")[2].rstrip("()")
            base = self.__dict__["_stand_in_base"] = _StubMeta(name, (StubBase,), {"stand_in_": self})
        return (base,)

    def __getitem__(self, key: Any) -> Stub:
        return _result(self, "subscripted")

    def __setitem__(self, key: Any, value: Any) -> None:
        _result(self, "written to")

    def __or__(self, other: Any) -> Stub:
        return _result(self, "used in a union")

    __ror__ = __or__

    def __instancecheck__(self, instance: object) -> bool:
        """No object is an instance of a class that is not here, unless its own class was derived from the stand-in."""
        return self.__subclasscheck__(type(instance))

    def __subclasscheck__(self, subclass: type) -> bool:
        return self.__dict__.get("_stand_in_base", self) in subclass.__mro__

    def __eq__(self, other: object) -> bool:
        """Differ from every type (a class that is not here is none of those that are); refuse any other comparison."""
        known = "_stand_in_opaque" in self.__dict__ or isinstance(other, _TYPES) or type(other).__module__ == "typing"
        if self is not other and not known:
            refuse(self, "compared")
        return self is other

    __hash__ = object.__hash__

    def __get_pydantic_core_schema__(self, *_arguments: object) -> dict[str, Any]:
        return _refusing_schema(self)


def _refusing_schema(stub: Stub) -> dict[str, Any]:
    """Return the schema of a model field whose type is a stand-in: the model can be defined, and validates nothing.

    The form is pydantic-core's `no-info` plain validator; pydantic may be here where the field's type is not.
    """

    def validate(_value: object) -> NoReturn:
        refuse(stub, "asked to validate a model's field")

    return {"type": "function-plain", "function": {"type": "no-info", "function": validate}}


def refuse(stub: Stub, use: str) -> NoReturn:
    """Raise StubCalled (EmulationGap for a vendor's package): the stand-in was used for a value."""
    raise stub._stand_in_origin.refusal(stub._stand_in_name, use)  # noqa: SLF001 - ours


def _result(stub: Stub, use: str) -> Stub:
    """Return the stand-in for what the real thing would have returned, while modules load; refuse at any other time."""
    if executing() is None:
        refuse(stub, use)
    return Stub(f"{stub._stand_in_name}()", stub._stand_in_origin)  # noqa: SLF001 - ours


def _typed(stub: Stub, result: Stub) -> object:
    """Return the stand-in for a result whose type is known: a text that says so, or an object that equals no value."""
    name = stub._stand_in_name  # noqa: SLF001 - ours
    kind = stub._stand_in_origin.markers.get(name, "unknown")  # noqa: SLF001 - ours
    if kind == "object":
        result.__dict__["_stand_in_opaque"] = True
    text = f"poolparity: stand-in for the result of {name}"
    return {"str": text, "bytes": text.encode()}.get(kind, result)


def _is_decoration(thing: object, caller: FrameType) -> bool:
    """Tell `@stub` from `stub(thing)`: a decorated function or class has no name in its namespace yet."""
    if isinstance(thing, Stub):
        return hasattr(thing, "__wrapped__")
    if not isinstance(thing, (type, FunctionType, classmethod, staticmethod)):
        return False
    bound: object = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        bound = getattr(bound, name, None)
    return bound is not thing and caller.f_locals.get(thing.__name__) is not thing


def _decorated(decorator: Stub, thing: Any) -> Any:
    """Return what an unknown decorator leaves: importable, and refused when it is used."""
    if isinstance(thing, type):

        def refuse_instances(cls: type, *_args: object, **_keywords: object) -> Stub:
            return _result(decorator, f"needed to instantiate {cls.__qualname__}, which it decorates")

        thing.__new__ = refuse_instances  # type: ignore[assignment]  # on purpose: its instances are unknown
        return thing
    name = f"{getattr(thing, '__qualname__', thing)} (decorated with {decorator._stand_in_name})"  # noqa: SLF001 - ours
    return Stub(name, decorator._stand_in_origin, wrapped=thing)  # noqa: SLF001 - ours


_VALUE_USES: Final = {
    "asked for its truth": "bool",
    "measured": "len length_hint",
    "iterated over": "iter next contains reversed",
    "converted": "int index float complex bytes fspath round trunc",
    "compared": "lt le gt ge",
    "computed with": (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul "
        "and rand xor rxor lshift rlshift rshift rrshift neg pos abs invert iadd isub imul divmod"
    ),
    "entered": "enter exit aenter aexit",
    "deleted from": "delitem",
}


def _refuser(use: str) -> Callable[..., NoReturn]:
    def method(self: Stub, *_operands: object) -> NoReturn:
        refuse(self, use)

    return method


for _use, _operations in _VALUE_USES.items():
    for _operation in _operations.split():
        setattr(Stub, f"__{_operation}__", _refuser(_use))


_TYPES: Final = (Stub, type, NoneType, UnionType, GenericAlias)


class StubModule(ModuleType):
    """A stand-in for a module: every public name in it is a stand-in."""

    def __init__(self, name: str, origin: Origin) -> None:
        super().__init__(name, f"stand-in for {name}, which this machine lacks")
        self.__path__: list[str] = []
        self._stand_in_origin = origin

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        child = Stub(f"{self.__name__}.{name}", self._stand_in_origin)
        setattr(self, name, child)
        return child
