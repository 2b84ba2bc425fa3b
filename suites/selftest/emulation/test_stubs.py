"""Stand-ins: usable while a SUT module is being executed, and refused at any other time."""

import json
import operator
from abc import ABC
from typing import Optional, Union

import pytest

from harness.emulation.loading import executing, marked
from harness.emulation.stubs import Origin, Stub, StubLog, StubModule
from harness.errors import EmulationGap, StubCalled


@pytest.fixture
def package():
    log = StubLog()
    log.record("tf", "sglang.srt.configs")
    return StubModule("tf", Origin("tf", "tf-dist", log))


@pytest.fixture
def vendor():
    return StubModule("hw", Origin("hw", "hw", StubLog(), vendor=True))


def test_names_are_stable(package):
    assert package.Config is package.Config
    assert package.nn.Module is package.nn.Module


def test_dunders_are_absent(package):
    assert not hasattr(package, "__version__")
    assert not hasattr(package.Config, "__wrapped__")


def test_a_call_says_what_who_and_what_to_do(package):
    with pytest.raises(
        StubCalled, match=r"tf\.load was called.*imported by sglang\.srt\.configs.*install tf-dist here"
    ):
        package.load("x")


def test_a_vendor_stand_in_is_an_emulation_gap(vendor):
    with pytest.raises(EmulationGap, match=r"hw\.synchronize was called.*hardware"):
        vendor.synchronize()


USES = [
    bool,
    len,
    int,
    float,
    iter,
    operator.neg,
    lambda stub: stub + 1,
    lambda stub: 1 + stub,
    lambda stub: stub < 1,
    lambda stub: stub == 1,
    lambda stub: stub != "hip",
    lambda stub: 1 in stub,
    range,
    lambda stub: stub.__enter__(),
    lambda stub: [*stub],
]


@pytest.mark.parametrize("use", USES)
def test_no_use_as_a_value_ever(package, use):
    with pytest.raises(StubCalled, match=r"tf\.value"):
        use(package.value)
    with marked("sglang.x"), pytest.raises(StubCalled, match=r"tf\.value"):
        use(package.value)


@pytest.mark.parametrize(
    "use", [lambda s: s(), lambda s: s[0], lambda s: s | None, lambda s: operator.setitem(s, 0, 1)]
)
def test_what_module_level_code_may_do_nobody_else_may(package, use):
    with marked("sglang.x"):
        use(package.value)
    with pytest.raises(StubCalled, match=r"tf\.value"):
        use(package.value)


def test_an_annotation(package):
    assert Optional[package.Config]  # noqa: UP045 - how SGLang writes it
    assert Union[int, package.Config, None]  # noqa: UP007 - same
    assert list[package.Config]
    with marked("sglang.x"):
        assert str(package.Config | None)


def test_a_decorated_function_imports_and_refuses_to_run(package):
    with marked("sglang.x"):

        @package.jit(fast=True)
        def kernel(x):
            return x

    assert kernel.__name__ == "kernel"
    with pytest.raises(StubCalled, match=r"kernel \(decorated with tf\.jit\(\)\) was called"):
        kernel(1)
    with pytest.raises(StubCalled, match="subscripted"):
        kernel[(1,)](1)


def test_decorators_can_be_stacked(package):
    with marked("sglang.x"):

        @package.autotune(configs=[package.Choice(1)])
        @package.jit
        def kernel():
            pass

    assert kernel.__wrapped__.__name__ == "kernel"


def helper():
    return 1


def test_passing_a_known_function_is_no_decoration(package):
    with marked("sglang.x"):
        result = package.register(helper)
    assert not hasattr(result, "__wrapped__")


def test_a_decorated_class_is_itself_and_makes_no_instance(package):
    with marked("sglang.x"):

        @package.register
        class Thing:
            size = 3

    assert Thing.size == 3
    with pytest.raises(StubCalled, match=r"instantiate .*Thing, which it decorates"):
        Thing()


def test_a_derived_class_makes_no_instance(package):
    class Config(package.PretrainedConfig, kind="x"):
        model_type = "mla"

    assert Config.model_type == "mla"
    with pytest.raises(StubCalled, match=r"tf\.PretrainedConfig was instantiated \(as a base of .*Config\)"):
        Config()


def test_a_base_beside_others(package):
    class Config(package.A, package.B, ABC):
        pass

    assert issubclass(Config, package.A)
    assert not issubclass(Config, package.C)


def test_a_missing_class_attribute_is_a_stand_in(package):
    class Config(package.Base):
        pass

    with pytest.raises(StubCalled, match=r"tf\.Base\.from_pretrained was called"):
        Config.from_pretrained("x")


def test_nothing_is_an_instance_of_what_is_not_here(package):
    assert not isinstance(3, package.Config)


def test_it_is_none_of_the_types_that_are_here(package):
    assert package.Config is not None
    assert package.Config != int  # noqa: E721 - typing compares like this
    assert package.Config != package.Other


def test_a_model_field_of_an_absent_type_validates_nothing(package):
    class Derived(package.Base):
        pass

    for kind in (package.Config, Derived):
        schema = kind.__get_pydantic_core_schema__(kind, None)
        with pytest.raises(StubCalled, match="asked to validate a model's field"):
            schema["function"]["function"]({})


def test_it_cannot_be_serialised(package):
    with marked("sglang.x"):
        result = package.dumps({})
    with pytest.raises(TypeError):
        json.dumps(result)


@pytest.mark.parametrize(("kind", "value"), [("str", str), ("bytes", bytes)])
def test_a_marked_result_says_what_it_is(kind, value):
    package = StubModule("tf", Origin("tf", "tf", StubLog(), markers={"tf.dumps": kind}))
    with marked("sglang.x"):
        result = package.dumps()
    assert isinstance(result, value)
    assert "stand-in for the result of tf.dumps" in repr(result)
    with pytest.raises(StubCalled):
        package.dumps()


def test_an_object_result_equals_no_name():
    package = StubModule("tf", Origin("tf", "tf", StubLog(), markers={"tf.backend": "object"}))
    with marked("sglang.x"):
        result = package.backend()
    assert isinstance(result, Stub)
    assert result != "inductor"


def test_marks_nest_and_end():
    with marked("sglang.a"), marked("sglang.b"):
        assert executing() == "sglang.b"
    assert executing() is None


def test_the_log_lists_packages_and_importers():
    log = StubLog()
    log.record("b", "sglang.y")
    log.record("a", "sglang.x")
    assert (log.names(), log.importers("b"), log.importers("c")) == (["a", "b"], ["sglang.y"], [])
