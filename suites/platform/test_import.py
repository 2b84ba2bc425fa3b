from harness.checks.moe_import_targets import REPORT, check_import


def test_import(target, cell, meter):
    """The module and everything that it imports, also lazily, loads in a fresh process and binds its names."""
    check_import(target, cell.fresh(REPORT, *target.arguments), meter)
