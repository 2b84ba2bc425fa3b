"""`poolparity doctor`, on this machine and on imagined ones."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from harness import platforms
from harness.cli import main
from harness.commands import examination
from harness.commands.examination import choose_device, examine_packages
from harness.platforms import Detection

ABSENT = Detection(present=False, reason="no such device")
NOWHERE = Path("/nowhere")


def npu(monkeypatch, *, built, toolchain):
    monkeypatch.setattr(examination.npu_device, "available_without_building", lambda: built)
    monkeypatch.setattr(examination, "find_toolchain", lambda: toolchain)
    return choose_device(platforms.get("ascend"), ABSENT)


def test_hardware_is_the_device_of_its_platform():
    assert choose_device(platforms.get("rocm"), Detection(present=True, reason="MI300X")) == ("cuda", "the hardware")


def test_other_platforms_stand_on_the_cpu():
    assert choose_device(platforms.get("cuda"), ABSENT)[0] == "cpu"


def test_npu_device_that_is_built(monkeypatch):
    device, why = npu(monkeypatch, built=True, toolchain="none")
    assert device == "npu"
    assert "built and cached" in why


def test_npu_device_that_can_be_built(monkeypatch):
    device, why = npu(monkeypatch, built=False, toolchain=SimpleNamespace(compiler="/opt/g++"))
    assert device == "npu"
    assert "/opt/g++" in why


def test_npu_device_that_cannot_be_built(monkeypatch):
    device, why = npu(monkeypatch, built=False, toolchain="no C++ compiler found")
    assert device == "cpu"
    assert "no C++ compiler found" in why


def test_packages_are_each_in_one_list():
    found = examine_packages(platforms.get("ascend"), NOWHERE)
    names = [*found.here, *found.emulated, *found.stubbed]
    assert len(names) == len(set(names))
    assert found.emulated == ["sgl_kernel_npu"]
    assert "numpy" in found.here
    assert "torch_npu" in found.stubbed


@pytest.fixture
def doctor(monkeypatch):
    """Run doctor on a machine without releases."""
    monkeypatch.setattr("harness.sut.cached_releases", list)
    return lambda *arguments: CliRunner().invoke(main, ["doctor", *arguments])


def test_json_has_every_platform_with_its_reason(doctor):
    answer = json.loads(doctor("--json", "-").stdout)
    assert (answer["schema"], answer["command"], answer["exit_code"], answer["releases"]) == (1, "doctor", 0, [])
    assert [report["name"] for report in answer["platforms"]] == list(platforms.NAMES)
    assert all(report["mode"] in ("native", "emulated") and report["reason"] for report in answer["platforms"])


def test_screen_names_what_matters(doctor):
    result = doctor()
    assert result.exit_code == 0
    shown = ("cores", "torch ", "none yet", "Huawei Ascend", "Stubbed on every platform", "Stubbed also on rocm")
    assert [text for text in shown if text not in result.stdout] == []


def test_json_into_a_missing_folder_is_2(doctor):
    assert doctor("--json", "/nowhere/out.json").exit_code == 2
