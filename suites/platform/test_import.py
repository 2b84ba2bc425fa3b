from harness.checks.moe_import_targets import check_import


def test_import(target, cell, meter):
    """The module and everything that it imports, also lazily, loads in a fresh process and binds its names."""
    report = cell.fresh("harness.checks.moe_imports:report_import", *target.arguments)
    check_import(target, report, meter)
