"""A process made to look like each platform, with a tiny SUT in it. One child process a platform answers everything.

The child hides the packages in HIDDEN, so the answers are the same whatever this machine has installed.
"""

import functools
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness import platforms

REPO = Path(__file__).resolve().parents[3]
HIDDEN = (
    "transformers",
    "tvm_ffi",
    "flashinfer",
    "triton",
    "xgrammar",
    "orjson",
    "torch_npu",
    "sgl_kernel",
    "acl",
    "ray",
    "huggingface_hub",
)
RELEASE = (
    "Metadata-Version: 2.4\nName: sglang\nVersion: 0.5.19\nRequires-Dist: orjson==3.9\nRequires-Dist: transformers\n"
)

MODULES = {
    "sglang/plain.py": "import numpy\n",
    "sglang/tvm.py": "import tvm_ffi\n",
    "sglang/tvm_by_name.py": "import importlib\nimportlib.import_module('tvm_ffi.core')\n",
    "sglang/quantization.py": "from sgl_kernel.quantization import ggml_moe_a8_vec\n",
    "sglang/no_symbol.py": "from sgl_kernel.kvcacheio import transfer_kv_by_magic\n",
    "sglang/ours.py": "import pytest\n",
    "sglang/rays.py": "import ray\n",
    "sglang/tokenizer.py": """
        import transformers.models.llama
        from transformers import Auto
        def load(): return Auto.load()
    """,
    "sglang/lazy.py": "def go():\n    from sglang import late\n    return late.Late.__mro__\n",
    "sglang/late.py": """
        import transformers
        @transformers.register('x')
        def function(): pass
        class Late(transformers.Base): pass
    """,
    "sglang/asks.py": """
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec
        def has(name): return find_spec(name) is not None
        def version_of(name):
            try: return version(name)
            except PackageNotFoundError: return None
    """,
    "sglang/kernels.py": """
        import triton, triton.language as tl
        BACKEND = triton.runtime.driver.active.get_current_target().backend
        @triton.autotune(configs=[triton.Config({'B': 1})], key=['n'])
        @triton.jit
        def kernel(x, n: tl.constexpr): pass
    """,
    "sglang/vendors.py": "import wave_lang, tokenizers, interegular\n",
    "site/wave_lang.py": "",
    "site/tokenizers.py": "",
    "site/interegular.py": "",
    "sglang/jit_kernel/__init__.py": "",
    "sglang/jit_kernel/utils.py": "def load_jit(*a, **k): return 'compiled'\n",
    "sglang/jit_kernel/user.py": "from sglang.jit_kernel.utils import load_jit\n",
}

CHILD = """
import importlib, json, os, sys
from importlib.machinery import PathFinder
from pathlib import Path
HIDDEN, platform, root = {hidden!r}, {platform!r}, Path({root!r})
class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition('.')[0] in HIDDEN else super().find_spec(name, path, target)
sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
import torch
from harness import emulation
from harness.emulation import npu_device
npu_device.build_or_reason = lambda: 'no compiler in this test'
done = emulation.install(platform, root)
out = dict(device=done.device, note=done.note)
def attempt(name, ask):
    try:
        out[name] = ask()
    except Exception as error:
        out[name] = f'{{type(error).__name__}}: {{error}}'
for name in {modules!r}:
    attempt(name, lambda: importlib.import_module(name) and 'imports')
from sglang import asks, jit_kernel
from sglang.jit_kernel import user
for name in {probes!r}:
    attempt('has ' + name, lambda: asks.has(name))
for name in {versions!r}:
    attempt('version of ' + name, lambda: asks.version_of(name))
attempt('stub called', lambda: sys.modules['sglang.tokenizer'].load())
attempt('lazy import', lambda: len(sys.modules['sglang.lazy'].go()))
attempt('others import', lambda: importlib.import_module('transformers') and 'imports')
attempt('others probe', lambda: importlib.util.find_spec('transformers') is not None)
attempt('others get ours', lambda: importlib.import_module('pytest') and 'imports')
def statement(text):
    exec(text, {{'__name__': 'some_library'}})
    return 'imports'
attempt('others import statement', lambda: statement('import transformers'))
for name in ('wave_lang', 'tokenizers', 'interegular'):
    attempt(name, lambda: type(sys.modules[name]).__name__)
attempt('jit', lambda: user.load_jit.__module__)
attempt('launch', lambda: sys.modules['sglang.kernels'].kernel[(1,)](1))
attempt('backend', lambda: sys.modules['sglang.kernels'].BACKEND)
attempt('ggml call', lambda: sys.modules['sglang.quantization'].ggml_moe_a8_vec(1))
attempt('is cuda', lambda: torch.cuda.is_available() and bool(torch.version.cuda))
attempt('is hip', lambda: bool(torch.version.hip))
attempt('is xpu', lambda: torch.xpu.is_available())
attempt('is npu', lambda: hasattr(torch, 'npu') and torch.npu.is_available())
attempt('on cuda', lambda: torch.zeros(1, device='cuda').tolist())
attempt('cpu engine', lambda: os.environ.get('SGLANG_USE_CPU_ENGINE'))
attempt('again', lambda: emulation.install(platform, root) and 'installed')
out['stubs'], out['importers'] = done.stubs.names(), done.stubs.importers('transformers')
out['written'] = [str(path) for path in root.rglob('*.pyc')]
print(json.dumps(out))
"""
PROBES = (
    "numpy",
    "tvm_ffi",
    "flashinfer",
    "torch_npu",
    "sgl_kernel.quantization",
    "transformers",
    "pytest",
    "transformers.x",
)
VERSIONS = ("sglang", "orjson", "numpy", "pytest", "sglang-kernel", "transformers")


def write_sut(root):
    for name, text in MODULES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    (root / "sglang-0.5.19.dist-info").mkdir()
    (root / "sglang-0.5.19.dist-info" / "METADATA").write_text(RELEASE)
    return root


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """answers(platform)[question]: what the child said."""

    @functools.cache
    def ask(platform):
        root = write_sut(tmp_path_factory.mktemp(platform))
        apart = ("site/", "sglang/jit_kernel/", "sglang/late.py")
        modules = [name.removesuffix(".py").replace("/", ".") for name in MODULES if not name.startswith(apart)]
        code = CHILD.format(
            hidden=HIDDEN, platform=platform, root=str(root), modules=modules, probes=PROBES, versions=VERSIONS
        )
        environment = {
            "PATH": "",
            "PYTHONPATH": f"{REPO}:{root / 'site'}",
            "POOLPARITY_CACHE": str(root / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    return ask


every_platform = pytest.mark.parametrize("platform", platforms.NAMES)


@every_platform
def test_what_is_here_and_brought_is_real(answers, platform):
    assert answers(platform)["sglang.plain"] == "imports"


@pytest.mark.parametrize("how", ["sglang.tvm", "sglang.tvm_by_name"])
@pytest.mark.parametrize(
    ("platform", "result"), [("ascend", "imports"), ("xpu", "ModuleNotFoundError: No module named 'tvm_ffi'")]
)
def test_what_the_install_does_not_bring_is_absent(answers, platform, result, how):
    assert answers(platform)[how] == result


@every_platform
def test_what_only_this_machine_has_is_absent(answers, platform):
    assert answers(platform)["sglang.ours"] == "ModuleNotFoundError: No module named 'pytest'"
    assert answers(platform)["sglang.rays"] == "ModuleNotFoundError: No module named 'ray'"


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
def test_the_module_level_import_of_a_cuda_kernel(answers, platform, result):
    assert answers(platform)["sglang.quantization"] == result


def test_calling_a_kernel_without_a_double(answers):
    assert answers("cuda")["ggml call"].startswith("EmulationGap: sgl_kernel.quantization.ggml_moe_a8_vec was called")


def test_calling_an_op_that_the_build_lacks(answers):
    expected = "AttributeError: '_OpNamespace' 'sgl_kernel' object has no attribute 'ggml_moe_a8_vec'"
    assert answers("rocm")["ggml call"] == expected


def test_a_missing_symbol_is_an_import_error(answers):
    assert answers("cuda")["sglang.no_symbol"].startswith("ImportError: cannot import name 'transfer_kv_by_magic'")


@every_platform
def test_a_stand_in_imports_and_does_not_answer(answers, platform):
    assert answers(platform)["sglang.tokenizer"] == "imports"
    assert answers(platform)["stub called"].startswith("StubCalled: transformers.Auto.load was called")


def test_a_lazily_imported_module_loads_too(answers):
    assert answers("cuda")["lazy import"] == 4


def test_others_get_this_machine(answers):
    absent = "ModuleNotFoundError: No module named 'transformers'"
    assert answers("cuda")["others import"] == answers("cuda")["others import statement"] == absent
    assert answers("cuda")["others probe"] is False
    assert answers("cuda")["others get ours"] == "imports"


@pytest.mark.parametrize(
    ("platform", "present"),
    [
        ("cuda", {"numpy", "tvm_ffi", "flashinfer", "sgl_kernel.quantization", "transformers"}),
        ("ascend", {"numpy", "tvm_ffi", "torch_npu", "transformers"}),
        ("xpu", {"numpy", "transformers"}),
    ],
)
def test_probes_of_the_sut_are_about_the_platform(answers, platform, present):
    said = answers(platform)
    declared = present - {"tvm_ffi", "flashinfer"} if platform == "cuda" else present  # the SUT's own list has neither
    assert {name for name in PROBES[:-1] if said[f"has {name}"] is True} == declared
    assert said["has transformers.x"].startswith("EmulationGap: the SUT asked whether transformers.x exists")


def test_a_vendor_package_is_there_whatever_the_sut_lists(answers):
    assert answers("rocm")["version of sglang-kernel"] == "0.4.6.post1"
    assert answers("ascend")["version of sglang-kernel"] is None


def test_versions_are_about_the_platform(answers):
    said = answers("cuda")
    assert said["version of sglang"] == "0.5.19"
    assert said["version of orjson"] == "3.9"
    assert said["version of sglang-kernel"] == "0.4.6.post1"
    assert said["version of pytest"] is None
    assert said["version of transformers"].startswith("StubCalled: the SUT asked for the version of transformers")


@every_platform
def test_jit_kernels_come_from_the_doubles(answers, platform):
    assert answers(platform)["jit"].startswith("harness.emulation.doubles")


@pytest.mark.parametrize(("platform", "backend"), [("rocm", "hip"), ("ascend", "npu"), ("xpu", "xpu")])
def test_triton_kernels_import_without_triton(answers, platform, backend):
    assert answers(platform)["sglang.kernels"] == "imports"
    assert answers(platform)["backend"] == backend
    assert answers(platform)["launch"].startswith(
        "EmulationGap: kernel (decorated with triton.autotune()) was subscripted"
    )


def test_a_platform_without_a_driver_has_none(answers):
    assert answers("cpu")["sglang.kernels"].startswith("RuntimeError: 0 active drivers")


@every_platform
def test_torch_answers_for_the_platform_and_for_no_other(answers, platform):
    said = answers(platform)
    assert {name for name in ("cuda", "hip", "xpu", "npu") if said[f"is {name}"]} == {
        "cuda": {"cuda"},
        "rocm": {"hip"},
        "ascend": {"npu"},
        "xpu": {"xpu"},
        "cpu": set(),
    }[platform]
    assert said["cpu engine"] == ("1" if platform == "cpu" else None)


@every_platform
def test_no_tensor_reaches_a_real_accelerator(answers, platform):
    assert answers(platform)["on cuda"].startswith("EmulationGap: torch.cuda init was called under emulation")


def test_without_a_compiler_ascend_uses_the_cpu_and_says_so(answers):
    said = answers("ascend")
    assert said["device"] == "cpu"
    assert said["note"] == "pools are built on the CPU, there is no npu device: no compiler in this test"


@every_platform
def test_what_was_stood_in_for_is_recorded(answers, platform):
    assert {"transformers", "triton"} <= set(answers(platform)["stubs"])
    assert "sgl_kernel" not in answers(platform)["stubs"]
    assert answers(platform)["importers"] == ["sglang.late", "sglang.tokenizer"]


def test_the_suts_tree_stays_as_it_was(answers):
    assert all("/cache/bytecode/" in path for path in answers("cuda")["written"])
    assert answers("cuda")["written"]


def test_a_vendors_package_of_this_machine_is_not_used(answers):
    assert answers("rocm")["wave_lang"] == "StubModule"


def test_half_an_install_is_not_used(answers):
    """The child has tokenizers, and not the huggingface_hub that they require."""
    assert answers("rocm")["tokenizers"] == "StubModule"
    assert answers("rocm")["interegular"] == "module"


def test_a_second_install_is_refused(answers):
    assert answers("cuda")["again"].startswith("InfrastructureError: emulation must come before the SUT")
