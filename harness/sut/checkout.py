"""A tree that is on disk already: a source checkout, an installed environment, or a git ref of a checkout."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

from harness.errors import InfrastructureError, UsageError
from harness.sut import cache as store
from harness.sut.spec import PACKAGE, SutTree

_VERSION = re.compile(r"""^\s*(?:__version__|version)\s*(?:=\s*version\s*)?=\s*['"]([0-9][^'"]*)['"]""", re.MULTILINE)


def find_root(folder: Path) -> Path | None:
    """Return the folder that holds `sglang/`: in a checkout, beside the tree, or in an environment's site-packages."""
    places = [folder / "python", folder, *sorted(folder.glob("lib*/python3*/site-packages"))]
    return next((place for place in places if (place / PACKAGE / "srt").is_dir()), None)


def resolve_path(name: str) -> SutTree:
    """Return the tree at a path, as it is on disk; UsageError says what is there instead of SGLang."""
    folder = Path(name).expanduser()
    root = _root_or_usage_error(name, folder)
    return SutTree(name=name, root=root.resolve(), version=_version(root), identity=_identity(folder, root))


def _root_or_usage_error(name: str, folder: Path) -> Path:
    wish = "expected a checkout (python/sglang), a folder with sglang/, or an environment that has it"
    if not folder.exists():
        msg = f"{name!r} does not exist; {wish}; check the path, or write sglang==X for a release"
        raise UsageError(msg)
    if not folder.is_dir():
        msg = f"{name!r} is a file; {wish}; name the folder instead"
        raise UsageError(msg)
    try:
        root = find_root(folder)
    except OSError as reason:
        msg = f"{name!r} cannot be read ({reason.strerror}); {wish}; check its permissions"
        raise UsageError(msg) from reason
    if root is None:
        msg = f"{name!r} holds no SGLang (no sglang/srt); {wish}; name the folder that has it"
        raise UsageError(msg)
    return root


def resolve_ref(name: str, path: str, ref: str, cache: Path) -> SutTree:
    """Return the tree of a git ref, extracted into the cache; the checkout itself is left as it is."""
    folder = Path(path).expanduser()
    _root_or_usage_error(path, folder)
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if commit is None:
        msg = (
            f"{name!r}: {path!r} has no git ref {ref!r}; expected a branch, a tag or a commit that is there; "
            f"fetch it first, for example: git -C {path} fetch origin {ref}:{ref}"
        )
        raise UsageError(msg)
    commit = commit.strip()

    def fill(target: Path) -> tuple[str, str | None]:
        _extract(folder, commit, target)
        root = find_root(target)
        if root is None:
            msg = (
                f"{name!r}: commit {commit[:12]} holds no SGLang; expected python/sglang or sglang/; choose another ref"
            )
            raise UsageError(msg)
        return f"git {commit}", _version(root)

    tree, marker = store.publish(cache, f"git-{commit}", fill)
    root = find_root(tree) or tree
    return SutTree(name=name, root=root.resolve(), version=marker.version, identity=marker.identity)


def _extract(folder: Path, commit: str, target: Path) -> None:
    """Write the Python part of a commit into `target`, without touching the checkout's index or work tree."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    base = Path((top or str(folder)).strip())
    inside = "python" if _git(base, "cat-file", "-e", f"{commit}:python/{PACKAGE}") is not None else PACKAGE
    command = ["git", "-C", str(base), "archive", "--format=tar", commit, inside]
    ran = subprocess.run(command, capture_output=True, check=False)
    if ran.returncode:
        why = ran.stderr.decode(errors="replace").strip()
        msg = f"git archive {commit[:12]} in {folder}: {why}; expected a readable repository; run git fsck there"
        raise InfrastructureError(msg)
    with tarfile.open(fileobj=io.BytesIO(ran.stdout)) as archive:
        archive.extractall(target, filter="data")


def _git(folder: Path, *arguments: str) -> str | None:
    """Standard output of a git command, or None when it fails."""
    try:
        ran = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def _version(root: Path) -> str | None:
    for name in ("_version.py", "version.py"):
        path = root / PACKAGE / name
        if path.is_file() and (found := _VERSION.search(path.read_text(errors="replace"))):
            return found[1].partition("+")[0]
    for metadata in root.glob(f"{PACKAGE}-*.dist-info/METADATA"):
        if found := re.search(r"^Version: (\S+)", metadata.read_text(errors="replace"), re.MULTILINE):
            return found[1]
    described = _git(root, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    return described.strip().removeprefix("v") if described else None


def _identity(folder: Path, root: Path) -> str:
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return f"folder sha256:{_content_hash(root)}"
    dirty = _git(folder, "status", "--porcelain", "--", str(root)) or ""
    return f"git {commit.strip()}" + (f"-dirty sha256:{_content_hash(root)}" if dirty.strip() else "")


def _content_hash(root: Path) -> str:
    """Hash of the names, sizes and contents of the Python and kernel sources, in a fixed order."""
    digest = hashlib.sha256()
    for base, folders, names in os.walk(root / PACKAGE):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".cuh", ".cu", ".h")):
                path = Path(base) / name
                digest.update(f"{path.relative_to(root)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
