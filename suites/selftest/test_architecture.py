"""Arrows go one way: suites -> harness -> reference (docs/architecture.md)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABOVE = ("harness.verdicts", "harness.reports", "harness.cells", "harness.bundles", "harness.commands")
FORBIDDEN = {
    "reference": ("harness", "sglang", "pytest", "suites"),
    "harness/emulation": ABOVE,
    "harness/sut": ABOVE,
    "harness/platforms": ("harness.emulation", "harness.sut", "harness.verdicts", "harness.reports", "harness.cells"),
    "harness/verdicts": ("harness.reports", "harness.commands", "harness.emulation"),
    "harness/checks": ("harness.reports", "harness.commands", "harness.bundles"),
    "harness/bundles": ("harness.reports", "harness.commands", "harness.cells.pool"),
}


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_import_goes_against_the_arrows(room):
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / room).rglob("*.py")
        for module in imported_modules(path)
        if any(module == name or module.startswith(f"{name}.") for name in FORBIDDEN[room])
    ]
    assert not wrong


def test_reference_stands_alone():
    code = "import reference, sys; print([m for m in sys.modules if m.startswith(('harness', 'sglang', 'pytest'))])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_no_file_outgrew_its_room():
    files = [p for top in ("harness", "reference", "suites") for p in (ROOT / top).rglob("*.py")]
    assert not [str(p.relative_to(ROOT)) for p in files if len(p.read_text().splitlines()) > 500]
