"""A broken import names the line, the missing symbol and the way there."""

import pytest

from harness.cells.fresh import FreshError
from harness.checks.meter import Meter
from harness.checks.moe_import_targets import ALONE, TOGETHER, Imports, check_import, import_targets
from harness.checks.moe_imports import diagnose, import_all, import_names, in_package, missing_symbol
from harness.verdicts.causes import Cause
from harness.verdicts.outcomes import Outcome


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


def test_only_bound_names_are_reported():
    assert import_names("json", ["loads", "no_such_name"]) == ["loads"]


def test_error_carries_its_diagnosis():
    with pytest.raises(ModuleNotFoundError) as caught:
        import_names("no_such_module", [])
    assert caught.value.__notes__ == ["a module outside the SUT needs no_such_module; chain: no_such_module"]


def test_together_marks_what_fails():
    assert import_all([("json", ["loads"], ""), ("no_such_module", [], "")]) == [["loads"], None]


class Here:
    """A cell whose fresh processes are this one, and die when they are to do several imports at a time."""

    def __init__(self, *, dies):
        self.dies = dies
        self.asked = []

    def fresh(self, function, *args):
        self.asked.append(function)
        if function == TOGETHER and self.dies:
            raise FreshError(Cause(Outcome.CRASH, "it died", ""))
        return (import_all if function == TOGETHER else import_names)(*args)


@pytest.mark.parametrize("platform", ["cuda", "ascend"])
@pytest.mark.parametrize("dies", [False, True])
def test_reference_targets_import(platform, dies):
    targets = import_targets(platform, None)
    cell, meter = Here(dies=dies), Meter()
    imports = Imports(cell, targets)
    for target in targets:
        check_import(target, imports.bound(target), meter)
    assert cell.asked == [TOGETHER, *([ALONE] * 3 if dies else [])]
    assert meter.bytes > 0


def test_unbound_class_fails_the_target():
    target = import_targets("cuda", None)[0]
    with pytest.raises(AssertionError, match=r"binds \[\]; expected \['MLATokenToKVPool'\]"):
        check_import(target, [], Meter())
