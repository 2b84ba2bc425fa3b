"""The generation is told by the classes that a tree has."""

import pytest

from harness.checks.moe_generation import STEP_MODULE, STEP_NAME, generation_of
from harness.checks.moe_step import reference_step, step_of
from harness.errors import NoDriver
from reference.moe.fusion import FUSED_METHODS, WITH_FLAG


def plant(root, module, text):
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def method_class(key, body="pass"):
    return f"import torch\n\nclass {FUSED_METHODS[key].class_name}:\n    {body}\n"


def test_reference_is_the_newest():
    assert generation_of(None) is WITH_FLAG


def test_old_tree(tmp_path):
    plant(tmp_path, FUSED_METHODS["mxfp4_marlin"].module, method_class("mxfp4_marlin"))
    found = generation_of(tmp_path)
    assert (found.methods, found.reads_flag) == (("mxfp4_marlin",), False)


def test_a_step_that_forgot_the_flag_is_still_judged_by_it(tmp_path):
    text = method_class("mxfp4_marlin", "fuse_routed_scaling_factor_in_topk = True")
    plant(tmp_path, FUSED_METHODS["mxfp4_marlin"].module, text)
    assert generation_of(tmp_path).reads_flag


def test_tree_without_the_step_has_no_driver(tmp_path):
    with pytest.raises(NoDriver, match=f"no driver for this fusion step: .*{STEP_NAME}"):
        step_of(tmp_path)


def test_step_is_found_by_its_definition(tmp_path):
    plant(tmp_path, STEP_MODULE, f"import torch\n\ndef {STEP_NAME}(experts):\n    pass\n")
    assert step_of(tmp_path) is not reference_step
