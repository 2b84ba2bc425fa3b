"""What a SUT tree says about itself."""

import pytest

from harness.emulation.requirements import read_sut


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("version.py", '__version__ = "0.5.18"\n', "0.5.18"),
        ("_version.py", "__version__ = version = '0.5.19.dev3+gabc'\n", "0.5.19.dev3+gabc"),
        ("_version.py", "version: str\n__version__: str = '0.5.20'\n", "0.5.20"),
        ("version.py", "from sglang._version import __version__\n", None),
    ],
)
def test_version_of_a_checkout(name, text, version, tmp_path):
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / name).write_text(text)
    assert read_sut(tmp_path, ()).version == version


def test_nothing_declared_is_not_an_empty_list(tmp_path):
    assert read_sut(tmp_path, ("METADATA", "pyproject.toml")).declared is None


def test_extras_of_a_checkout(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["NumPy"]\n[project.optional-dependencies]\nhip = ["amd_aiter==0.1"]\nall = ["no"]\n'
    )
    facts = read_sut(tmp_path, ("METADATA", "pyproject.toml"), ("hip",))
    assert facts.declared == {"numpy", "amd-aiter"}
    assert (facts.pins, facts.source) == ({"amd-aiter": "0.1"}, "pyproject.toml")
