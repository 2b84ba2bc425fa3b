"""Building `npu_device.cpp`: once for each torch version, source and compiler, under a lock, into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import platformdirs
from filelock import FileLock, Timeout

SOURCE: Final = Path(__file__).with_name("npu_device.cpp")
COMPILERS: Final = ("c++", "g++", "clang++")
FLAGS: Final = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w")
LIBRARY: Final = "libpoolparity_npu.so"

_COMPILE_SECONDS: Final = 300
_ERROR_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Toolchain:
    """What a build depends on."""

    compiler: Path
    torch_folder: Path
    torch_version: str

    @property
    def key(self) -> str:
        """Names the build: torch version, then a hash of the source, the flags and the compiler's file."""
        status = self.compiler.stat()
        digest = hashlib.sha256(SOURCE.read_bytes())
        digest.update(
            repr((FLAGS, str(self.compiler), status.st_size, status.st_mtime_ns, str(self.torch_folder))).encode()
        )
        return f"torch-{self.torch_version}-{digest.hexdigest()[:16]}"

    def command(self, output: Path) -> list[str]:
        """Return the compiler's command line."""
        include, libraries = self.torch_folder / "include", self.torch_folder / "lib"
        api = include / "torch" / "csrc" / "api" / "include"
        paths = [f"-I{include}", f"-I{api}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        return [str(self.compiler), *FLAGS, str(SOURCE), "-o", str(output), *paths, "-ltorch_cpu", "-lc10"]


def default_cache() -> Path:
    """Folder of the builds: below POOLPARITY_CACHE, or the user's cache folder."""
    base = os.environ.get("POOLPARITY_CACHE") or platformdirs.user_cache_dir("poolparity")
    return Path(base) / "npu_device"


def find_compiler() -> Path | None:
    """Return the C++ compiler: $CXX, else the first of c++, g++, clang++ on PATH; None when there is none."""
    for name in filter(None, (os.environ.get("CXX"), *COMPILERS)):
        found = shutil.which(name)
        if found is not None:
            return Path(found).resolve()
    return None


def _torch_folder() -> Path | None:
    torch = find_spec("torch")
    return Path(next(iter(torch.submodule_search_locations))) if torch and torch.submodule_search_locations else None


def find_toolchain() -> Toolchain | str:
    """Return what the build needs, or the reason why it cannot be had."""
    folder = _torch_folder()
    if folder is None:
        return "torch is not installed"
    if not (folder / "include" / "ATen" / "ATen.h").is_file():
        return f"torch in {folder} has no C++ headers"
    compiler = find_compiler()
    if compiler is None:
        return f"no C++ compiler found; expected $CXX or one of {', '.join(COMPILERS)} on PATH; install g++ or clang"
    return Toolchain(compiler, folder, metadata.version("torch"))


def available_without_building(cache: Path | None = None) -> bool:
    """Whether a finished build for this torch, source and compiler lies in the cache."""
    toolchain = find_toolchain()
    return isinstance(toolchain, Toolchain) and (cache or default_cache()).joinpath(toolchain.key, LIBRARY).is_file()


def build_or_reason(cache: Path | None = None) -> Path | str:
    """Return the path of the shared library, built where it was not yet (about half a minute), or why there is none.

    Safe to call from several processes at once. A compile that failed is not tried again until its record is deleted.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, str):
        return toolchain
    folder = (cache or default_cache()) / toolchain.key
    library = folder / LIBRARY
    if library.is_file():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "build.lock", timeout=2 * _COMPILE_SECONDS):
            return library if library.is_file() else _build(toolchain, folder, library)
    except Timeout:
        return f"another process has held {folder / 'build.lock'} for {2 * _COMPILE_SECONDS} s; end it and try again"
    except OSError as error:
        return f"the cache {folder} cannot be written: {error}; set POOLPARITY_CACHE to a folder that can"


def _build(toolchain: Toolchain, folder: Path, library: Path) -> Path | str:
    record = folder / "failed.txt"
    if record.is_file():
        return f"{toolchain.compiler} failed before; its messages are in {record}; delete that file to try again"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        output = Path(scratch) / LIBRARY
        problem = _compile(toolchain.command(output))
        if problem is None:
            output.replace(library)
            return library
    record.write_text(problem, encoding="utf-8")
    first = next((line for line in problem.splitlines() if "error" in line), problem.splitlines()[0])
    return f"{toolchain.compiler} failed: {first.strip()}; all its messages are in {record}"


def _compile(command: list[str]) -> str | None:
    """Run the compiler; returns its messages when it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_COMPILE_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"error: no result after {_COMPILE_SECONDS} s"
    if done.returncode == 0:
        return None
    messages = done.stderr.decode(errors="replace").splitlines()
    return "\n".join(messages[:_ERROR_LINES]) or f"error: exit code {done.returncode} and no message"
