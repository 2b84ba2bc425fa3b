from datetime import UTC, datetime

import pytest

from harness.bundles import place
from harness.bundles.manifest import FILE
from harness.errors import UsageError


def bundle(runs, number):
    folder = runs / f"20261201T1200{number:02d}Z-abcdef"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("{}")
    return folder


def test_fresh_names_sort_by_time():
    early, late = (place.fresh_name(datetime(2026, 12, day, tzinfo=UTC)) for day in (1, 2))
    assert early.startswith("20261201T000000Z-")
    assert early < late


@pytest.mark.parametrize("name", ["new", "new/deeper", "."])
def test_new_and_empty_folders_are_fine(tmp_path, name):
    assert place.check_out(tmp_path / name) == tmp_path / name
    assert list(tmp_path.iterdir()) == []


def test_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="holds something already"):
        place.check_out(tmp_path)


def test_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a folder"):
        place.check_out(tmp_path / "file")


def test_place_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write in"):
        place.check_out(tmp_path / "file" / "out")


def test_system_that_refuses_is_quoted():
    with pytest.raises(UsageError, match="make the bundle"):
        place.make(place.Path("/proc/poolparity"))


def test_prune_keeps_the_newest(tmp_path):
    made = [bundle(tmp_path, n) for n in range(5)]
    assert place.prune(tmp_path, keep=3) == made[:2]
    assert sorted(tmp_path.iterdir()) == made[2:]


def test_prune_leaves_what_is_not_ours(tmp_path):
    made = bundle(tmp_path, 0)
    foreign = tmp_path / "20261201T120000Z-notes"
    foreign.mkdir()
    without_manifest = tmp_path / "20261201T120001Z-abcdef"
    without_manifest.mkdir()
    (tmp_path / "20261201T120002Z-abcdef").symlink_to(bundle(tmp_path / "elsewhere", 9))
    assert place.prune(tmp_path, keep=0) == [made]
    assert len(list(tmp_path.iterdir())) == 4
