"""The platforms and their data."""

import pytest

from harness import platforms
from harness.errors import InfrastructureError, UsageError
from harness.platforms.base import read_table


def test_unknown_platform_names_the_known_ones():
    with pytest.raises(UsageError, match="unknown platform 'cdua'; expected one of cuda, rocm, ascend, xpu, cpu"):
        platforms.get("cdua")


def test_defaults_are_known():
    assert set(platforms.DEFAULT) < set(platforms.NAMES)


def test_missing_data_say_which_file():
    with pytest.raises(InfrastructureError, match=r"abacus\.toml"):
        read_table("abacus.toml")


@pytest.mark.parametrize("name", platforms.NAMES)
def test_every_platform_has_its_facts_with_a_source(name):
    data = platforms.get(name).data
    assert all(data[table]["source"] for table in ("platform", "install", "image"))
    assert data["install"]["read"] >= "2026-11"


@pytest.mark.parametrize(
    ("name", "device", "io_backend"),
    [("cuda", "cuda", "kernel"), ("rocm", "cuda", "kernel"), ("ascend", "npu", "kernel_ascend"), ("cpu", "cpu", "")],
)
def test_device_and_default_io_backend(name, device, io_backend):
    platform = platforms.get(name)
    assert (platform.torch_device, platform.default_io_backend) == (device, io_backend)


@pytest.mark.parametrize("name", platforms.NAMES)
def test_detection_gives_a_reason(name):
    assert platforms.get(name).detect_native().reason
