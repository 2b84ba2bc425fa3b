"""Real releases: the pool and fusion modules import on every platform, and the one bug that must not is seen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness import platforms
from harness.sut import resolve

pytestmark = [pytest.mark.network, pytest.mark.slow]

REPO = Path(__file__).resolve().parents[3]
EXPERT_PACK = "sglang/srt/layers/quantization/expert_pack.py"
POOLS = ["sglang.srt.mem_cache.pool_host.mla", "sglang.srt.mem_cache.memory_pool"]
NPU_POOLS = ["sglang.srt.hardware_backend.npu.memory_pool_npu"]
QUANTIZATION = "sglang.srt.layers.quantization."
FUSION = [QUANTIZATION + name for name in ("mxfp4_flashinfer_trtllm_moe", "mxfp4_marlin_moe", "expert_pack")]
CHILD = """
import importlib, json, sys
platform, root, hidden, *modules = sys.argv[1:]
from importlib.machinery import PathFinder
from pathlib import Path
class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition('.')[0] in hidden.split() else super().find_spec(name, path, target)
sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
from harness import emulation
emulation.install(platform, Path(root))
out = {}
for name in modules:
    try:
        importlib.import_module(name)
        out[name] = 'imports'
    except Exception as error:
        out[name] = f'{type(error).__name__}: {error}'
print(json.dumps(out))
"""


def imports(platform, root, modules, hidden=""):
    """Import the modules in a process that looks like the platform; what each said."""
    command = [sys.executable, "-c", CHILD, platform, str(root), hidden, *modules]
    ran = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def overlay(root, target, name, text):
    """A tree like `root`, by links, in which one file has another text."""
    here, rest = name.split("/", 1) if "/" in name else (name, None)
    target.mkdir(exist_ok=True)
    for entry in root.iterdir():
        if entry.name != here:
            (target / entry.name).symlink_to(entry)
    if rest is None:
        (target / here).write_text(text)
    else:
        overlay(root / here, target / here, rest, text)
    return target


@pytest.mark.parametrize(
    ("platform", "hidden"), [*((name, "") for name in platforms.NAMES), ("rocm", "triton"), ("ascend", "triton")]
)
def test_pools_and_fusion_import_with_and_without_triton(platform, hidden):
    modules = POOLS + FUSION + (NPU_POOLS if platform == "ascend" else [])
    said = imports(platform, resolve("sglang==0.5.23").root, modules, hidden)
    assert said == dict.fromkeys(modules, "imports")


@pytest.mark.parametrize(
    ("platform", "result"),
    [
        ("cuda", "imports"),
        ("rocm", "imports"),
        ("cpu", "imports"),
        ("xpu", "ModuleNotFoundError: No module named 'sgl_kernel.quantization'"),
        ("ascend", "ModuleNotFoundError: No module named 'sgl_kernel'"),
    ],
)
def test_the_cuda_only_import_of_expert_pack(platform, result, tmp_path):
    """SGLang pull request 36529, put back into the first release that has the file."""
    root = resolve("sglang==0.5.19").root
    planted = (
        (root / EXPERT_PACK)
        .read_text()
        .replace("import torch\n", "import torch\nfrom sgl_kernel.quantization import ggml_moe_a8_vec\n", 1)
    )
    tree = overlay(root, tmp_path / "planted", EXPERT_PACK, planted)
    assert imports(platform, tree, [FUSION[2]]) == {FUSION[2]: result}


def test_a_cuda_only_package_on_xpu():
    """SGLang pull request 35290: fixed in 0.5.19, so 0.5.18 cannot load the model there."""
    module = "sglang.srt.models.minimax_m2"
    assert imports("xpu", resolve("sglang==0.5.18").root, [module])[module] == (
        "ModuleNotFoundError: No module named 'tvm_ffi'"
    )
    assert imports("xpu", resolve("sglang==0.5.19").root, [module])[module] == "imports"
