import pytest

from harness.commands.keyword import check_keyword
from harness.commands.names import SUITES, check_names
from harness.errors import UsageError


def test_names_keep_their_order_and_lose_repetitions():
    assert check_names("suite", ["moe", "kv", "moe"], SUITES) == ("moe", "kv")


@pytest.mark.parametrize(("wrong", "near"), [("kvv", "kv"), ("platfrom", "platform"), ("MOE", "moe")])
def test_wrong_name_is_told_the_nearest(wrong, near):
    with pytest.raises(UsageError, match=f"did you mean {near}"):
        check_names("suite", [wrong], SUITES)


def test_wrong_name_is_told_all_names():
    with pytest.raises(UsageError, match=r"^unknown suite 'zzz': expected one of kv, moe, platform, timing$"):
        check_names("suite", ["zzz"], SUITES)


@pytest.mark.parametrize("good", ["", "  ", "backup", "backup and not (drafts or p1)", "kv/backup[ascend-bf16]"])
def test_keyword_that_pytest_reads(good):
    assert check_keyword(good) == good.strip()


@pytest.mark.parametrize("bad", ["backup and", "(backup", "a b", "not", "a == b"])
def test_keyword_that_pytest_cannot_read(bad):
    with pytest.raises(UsageError, match=r"^-k .* is no selection: .*expected"):
        check_keyword(bad)
