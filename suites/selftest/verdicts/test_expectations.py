"""Expectations: which failures they cover, and what a broken file is told."""

from datetime import date

import pytest

from harness.data import fixtures_dir
from harness.errors import UsageError
from harness.verdicts.expectations import find, load

ENTRY = """
[[expectation]]
id = "split"
case = ["kv/backup[ascend-*-fp8-*]"]
sut = ">=0.5.21"
platform = ["ascend"]
message = "has no attribute 'data_ptrs'"
reference = "sgl-project/sglang#1"
reason = "because"
expires = 2027-03-01
"""
CELL = {"version": "0.5.22", "platform": "ascend", "mode": "emulated"}
CASE = "kv/backup[ascend-split-fp8-p16]"


@pytest.fixture
def read(tmp_path):
    def write_and_read(text):
        (tmp_path / "kv.toml").write_text(text)
        return load(tmp_path)

    return write_and_read


def test_entry_covers_its_case(read):
    assert [entry.id for entry in find(read(ENTRY), CASE, **CELL)] == ["split"]


@pytest.mark.parametrize(
    ("case", "changed"),
    [
        ("kv/backup[ascend-split-bf16-p16]", {}),
        ("kv/backup_all_pages[ascend-split-fp8-p16]", {}),
        ("kv/backupa", {}),
        (CASE, {"version": "0.5.20"}),
        (CASE, {"platform": "cuda"}),
    ],
)
def test_entry_covers_nothing_else(read, case, changed):
    assert not find(read(ENTRY), case, **{**CELL, **changed})


def test_pre_release_of_a_later_version_is_covered(read):
    assert find(read(ENTRY), CASE, **{**CELL, "version": "0.5.24.dev3+gabc"})


def test_message_is_searched(read):
    [entry] = read(ENTRY)
    assert entry.matches("AttributeError: 'P' object has no attribute 'data_ptrs'")
    assert not entry.matches("AttributeError: 'P' object has no attribute 'k_buffer'")


def test_entry_expires_after_its_day(read):
    [entry] = read(ENTRY)
    assert not entry.expired(date(2027, 3, 1))
    assert entry.expired(date(2027, 3, 2))


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (ENTRY.replace("reason", "raison"), "raison"),
        (ENTRY.replace('reason = "because"', ""), "reason"),
        (ENTRY.replace("2027-03-01", '"soon"'), "expires"),
        (ENTRY.replace(">=0.5.21", "0.5.21+"), "0.5.21+"),
        (ENTRY.replace("has no", "(has no"), "regular expression"),
        (ENTRY + ENTRY, "split"),
        ("[[expectations]]\nid = 1\n", "expectations"),
        ("[[expectation]\n", "TOML"),
    ],
)
def test_broken_file_is_named_with_the_entry_and_the_key(read, tmp_path, broken, told):
    with pytest.raises(UsageError, match=str(tmp_path)) as caught:
        read(broken)
    assert told in str(caught.value)


def test_our_own_entries_can_be_read():
    assert all(entry.reference and entry.reason for entry in load(fixtures_dir() / "expectations"))
