"""A broken import names the line, the missing symbol and the way there."""

import pytest

from harness.checks.meter import Meter
from harness.checks.moe_import_targets import check_import, import_targets
from harness.checks.moe_imports import diagnose, in_package, missing_symbol, report_import


def failing(code, name="sglang.srt.pack", file="/trees/s19/sglang/srt/pack.py"):
    """Run `code` as a function of one SUT module that runs another module's body."""
    inner = compile(code, file, "exec")
    outer = compile("def step():\n    exec(inner, {'__name__': name})\n", "/trees/s19/sglang/srt/last.py", "exec")
    space = {"__name__": "sglang.srt.last", "inner": inner, "name": name}
    exec(outer, space)  # noqa: S102 - two modules' frames without two files
    with pytest.raises((ImportError, NameError)) as caught:
        space["step"]()
    return diagnose(caught.value)


def test_chain_ends_at_the_missing_module():
    broken = failing("import no_such_package.part")
    assert broken.chain == ("step", "pack")
    assert broken.location == "sglang/srt/pack.py:1"
    assert str(broken).endswith("chain: step -> pack -> no_such_package")


def test_missing_name_is_qualified():
    assert failing("from json import no_such_name").missing == "json.no_such_name"


def test_unbound_name_is_named():
    assert failing("no_such_name(1)").missing == "no_such_name"


def test_statement_says_which_module_of_an_absent_package():
    error = ModuleNotFoundError("No module named 'vendor'", name="vendor")
    assert missing_symbol(error, "from vendor.quantization import op") == "vendor.quantization"


def test_path_is_cut_at_the_package():
    assert in_package("/home/me/sglang/python/sglang/srt/a.py") == "sglang/srt/a.py"


def test_report_names_what_is_bound():
    assert report_import("json", ["loads", "no_such_name"]) == {"bound": ["loads"], "error": "", "location": ""}


def test_report_keeps_the_error():
    assert report_import("no_such_module", [])["error"].startswith("ModuleNotFoundError: No module named")


@pytest.mark.parametrize("platform", ["cuda", "ascend"])
@pytest.mark.parametrize("number", range(3))
def test_reference_targets_import(platform, number):
    target, meter = import_targets(platform, None)[number], Meter()
    check_import(target, report_import(*target.arguments), meter)
    assert meter.bytes > 0


def test_unbound_class_fails_the_target():
    target = import_targets("cuda", None)[0]
    with pytest.raises(AssertionError, match=r"binds \[\]; expected \['MLATokenToKVPoolHost'\]"):
        check_import(target, {"bound": [], "error": "", "location": ""}, Meter())
