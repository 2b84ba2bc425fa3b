import io
import re

import pytest
from rich.console import Console

from harness.reports.groups import group
from harness.reports.plain import as_text, plain
from harness.reports.terminal import rendered


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb", "a\\rb"),
        ("\x07\x00\x9b", "\\x07\\x00\\x9b"),
        ("\u202eevil", "\\u202eevil"),
        ("\udcff", "\\udcff"),
        ("line\n\ttab é 漢", "line\n\ttab é 漢"),
    ],
)
def test_controls_are_shown_not_obeyed(hostile, shown):
    assert plain(hostile) == shown


def test_markup_is_text():
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(as_text("[bold]x[/bold] [/] :smile:"))
    assert console.file.getvalue() == "[bold]x[/bold] [/] :smile:\n"


def test_same_failure_is_one_group(cell, case):
    cases = [case("fail", f"kv/backup[{n}]", message="boom", location="sglang/a.py:1") for n in range(3)]
    (entry,) = group([cell(cases=cases), cell(cases=cases, platform="xpu")])
    assert (entry.cases, len(entry.ids), len(entry.cells)) == (6, 3, 2)


def test_what_one_expectation_covers_is_one_group(cell, case):
    cases = [case("fail", f"kv/backup[{n}]", message=text, expectation="E1") for n, text in enumerate(("boom", "bang"))]
    assert [entry.cases for entry in group([cell(cases=cases)])] == [2]


@pytest.mark.parametrize("other", [{"message": "bang"}, {"location": "sglang/a.py:2"}, {"expectation": "E1"}])
def test_another_failure_is_another_group(cell, case, other):
    cases = [case("fail", message="boom", location="sglang/a.py:1")]
    cases.append(case("fail", **{"message": "boom", "location": "sglang/a.py:1", **other}))
    assert len(group([cell(cases=cases)])) == 2


def test_messages_that_differ_in_numbers_are_one_group_and_say_so(cell, case):
    cases = [case("fail", f"kv/backup[{n}]", message=f"slot {n}: 0.{n}e-0{n} of fp32") for n in range(3)]
    (entry,) = group([cell(cases=cases)])
    assert (entry.cases, entry.message) == (3, "slot 0: 0.0e-00 of fp32")
    assert "the first of 3 messages" in rendered([cell(cases=cases)], {})


def test_passes_and_unsupported_are_only_counted(cell):
    assert group([cell("pass", "unsupported")]) == []


def test_matrix_has_every_cell_with_mode_and_device(cell):
    text = rendered([cell("pass", "pass"), cell("fail", platform="cuda", mode="native", device="cuda:0")], {})
    assert re.search(r"sglang==0.5.19 +│ P 2 +│ F 1 ", text)
    assert "emulated, npu" in text
    assert "native, cuda:0" in text


def test_cell_without_cases_says_so(cell):
    assert "no cases" in rendered([cell()], {})


def test_failure_shows_message_location_and_first_ids(cell, case):
    cases = [case("fail", f"kv/backup[{n}]", message="boom", location="sglang/a.py:1") for n in range(6)]
    text = rendered([cell(cases=cases)], {})
    assert "F fail x6  sglang/a.py:1\n    boom\n" in text
    assert "kv/backup[0]" in text
    assert "kv/backup[5]" not in text
    assert "… and 2 more" in text


def test_expected_failures_stand_apart_with_their_reason(cell, case):
    cases = [case("fail", message="boom", expectation="E1"), case("fail", "kv/load[x]", message="bang")]
    text = rendered([cell(cases=cases)], {"E1": "sgl-project/sglang#1: because"})
    wrong, expected = text.split("What is wrong")[1].split("Expected failures")
    assert "bang" in wrong
    assert "boom" not in wrong
    assert "E1: sgl-project/sglang#1: because" in expected


def test_hostile_message_stays_text(cell, case):
    text = rendered([cell(cases=[case("fail", message="\x1b[31m[red]x[/red][/")])], {})
    assert "\\x1b[31m[red]x[/red][/" in text
    assert "\x1b" not in text


def test_long_message_is_cut_with_a_count(cell, case):
    text = rendered([cell(cases=[case("fail", message="\n".join(map(str, range(40))))])], {})
    assert "… 28 more lines" in text


def test_long_lines_are_not_folded_in_a_file(cell, case):
    assert "y" * 500 in rendered([cell(cases=[case("fail", message="y" * 500)])], {})
