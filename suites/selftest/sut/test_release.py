import concurrent.futures
import errno

import pytest

from harness import sut
from harness.errors import InfrastructureError, UsageError
from harness.sut import cache as store
from harness.sut import pypi


def test_a_release_is_unpacked_without_its_assets(wheel, cache):
    tree = sut.resolve("sglang==0.5.19", cache=cache)
    assert (tree.root / "sglang/kernels/k.cuh").is_file()
    assert not (tree.root / "sglang/assets/big.bin").exists()
    assert (tree.version, tree.identity[:22]) == ("0.5.19", "sglang-0.5.19 sha256:" + tree.identity[21:22])


@pytest.mark.parametrize("tag", ["py3-none-any", "cp310-cp310-linux_x86_64", "cp312-abi3-manylinux_2_28_aarch64"])
def test_a_wheel_of_any_tag_will_do(index, cache, make_wheel, tag):
    make_wheel(index, tag=tag)
    assert sut.resolve("sglang==0.5.19", cache=cache).root is not None


def test_the_second_time_needs_no_index(wheel, cache):
    first = sut.resolve("sglang==0.5.19", cache=cache)
    wheel.unlink()
    assert sut.resolve("sglang==0.5.19", cache=cache, offline=True) == first


@pytest.mark.parametrize("harm", ["delete", "change", "marker"])
def test_a_damaged_tree_is_repaired(wheel, cache, harm):
    root = sut.resolve("sglang==0.5.19", cache=cache).root
    file = root / "sglang/srt/__init__.py"
    match harm:
        case "delete":
            file.unlink()
        case "change":
            file.write_bytes(b"x = 2 # longer\n")
        case "marker":
            (root / store.MARKER).write_bytes(b"{")
    assert sut.cached_releases(cache) == []
    sut.resolve("sglang==0.5.19", cache=cache)
    assert file.read_bytes() == b"x = 1\n"


def test_a_truncated_wheel_poisons_nothing(wheel, cache, index, make_wheel):
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[: len(whole) // 2])
    with pytest.raises((InfrastructureError, UsageError)):
        sut.resolve("sglang==0.5.19", cache=cache)
    make_wheel(index)
    assert sut.resolve("sglang==0.5.19", cache=cache).root is not None


def test_a_file_that_is_not_what_the_wheel_says_is_refused(index, cache, make_wheel):
    make_wheel(index, recorded={"sglang/srt/__init__.py": b"something else"})
    with pytest.raises(InfrastructureError, match="as the wheel's RECORD says"):
        sut.resolve("sglang==0.5.19", cache=cache)
    assert not list(store.trees(cache).iterdir())


def test_an_unknown_release_names_those_that_there_are(wheel, cache):
    with pytest.raises(UsageError, match=r"no release sglang==9.9.9; the index has 0.5.19"):
        sut.resolve("sglang==9.9.9", cache=cache)


@pytest.mark.parametrize("name", ["sglang==", "sglang==x.y"])
def test_a_malformed_version_is_a_usage_error(cache, name):
    with pytest.raises(UsageError, match="is no version"):
        sut.resolve(name, cache=cache)


def test_without_an_index_the_cached_releases_are_offered(wheel, index, cache):
    sut.resolve("sglang==0.5.19", cache=cache)
    wheel.unlink()
    with pytest.raises(InfrastructureError, match=r"use what is cached here: sglang==0.5.19"):
        sut.resolve("sglang==0.5.20", cache=cache)


def test_a_full_disk_leaves_nothing(wheel, cache, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pypi, "unpack", full)
    with pytest.raises(InfrastructureError, match=r"cannot write the cache .*No space left"):
        sut.resolve("sglang==0.5.19", cache=cache)
    assert not list(store.trees(cache).iterdir())


def test_a_cache_that_is_a_file_is_said_so(wheel, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="POOLPARITY_CACHE"):
        sut.resolve("sglang==0.5.19", cache=tmp_path / "file")


def test_several_processes_at_once_get_one_whole_tree(wheel, cache):
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        found = list(pool.map(resolve_in_process, [cache] * 3))
    assert len(set(found)) == 1


def resolve_in_process(cache):
    return str(sut.resolve("sglang==0.5.19", cache=cache).root)


def test_the_default_is_the_newest_that_works_offline(index, cache, make_wheel):
    for version in ("0.5.9", "0.5.19"):
        make_wheel(index, version=version)
        sut.resolve(f"sglang=={version}", cache=cache)
    assert sut.default_sut(cache) == "sglang==0.5.19"


@pytest.mark.network
def test_a_real_release():
    tree = sut.resolve("sglang==0.5.23")
    assert (tree.root / "sglang/srt/mem_cache/pool_host/mla.py").is_file()
