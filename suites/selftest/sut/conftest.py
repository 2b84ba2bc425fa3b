import base64
import hashlib
import zipfile

import pytest

FILES = {
    "sglang/__init__.py": b"",
    "sglang/version.py": b'__version__ = "0.5.19"\n',
    "sglang/srt/__init__.py": b"x = 1\n",
    "sglang/kernels/k.cuh": b"// kernel\n",
    "sglang/assets/big.bin": b"\0" * 4096,
}


def record(files):
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(lines).encode()


def write_wheel(folder, version="0.5.19", tag="cp311-cp311-manylinux_2_34_x86_64", files=None, recorded=None):
    folder.mkdir(parents=True, exist_ok=True)
    files = dict(FILES if files is None else files)
    info = f"sglang-{version}.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    files[f"{info}/RECORD"] = record(files if recorded is None else recorded)
    path = folder / f"sglang-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels that is all the package index there is."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def wheel(index):
    return write_wheel(index)


@pytest.fixture
def make_wheel():
    return write_wheel
