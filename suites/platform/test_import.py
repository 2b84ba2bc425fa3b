from harness.checks.moe_import_targets import check_import


def test_import(target, imports, meter):
    """The module and everything that it imports, also lazily, loads in a fresh process and binds its names."""
    check_import(target, imports.bound(target), meter)
