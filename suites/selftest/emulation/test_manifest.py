"""What a platform's install contains, per SUT."""

from graphlib import TopologicalSorter

import pytest

from harness import platforms
from harness.emulation import manifest
from harness.platforms.base import read_table

METADATA = "Metadata-Version: 2.4\nName: sglang\nVersion: {version}\n{requirements}"


@pytest.fixture
def wheel(tmp_path):
    """A tree as a wheel unpacks: only its metadata matter here."""

    def make(version, *requirements):
        folder = tmp_path / f"sglang-{version}.dist-info"
        folder.mkdir()
        lines = "".join(f"Requires-Dist: {line}\n" for line in requirements)
        (folder / "METADATA").write_text(METADATA.format(version=version, requirements=lines))
        return tmp_path

    return make


def load(platform, root):
    return manifest.load(platforms.get(platform), root)


def symbols(loaded, module):
    package = loaded.vendor[module.partition(".")[0]]
    found = package.modules[module]
    return {*found.functions, *found.objects}


def test_closure_gives_the_chain_of_reasons():
    graph = {"a": {"requires": ["b"]}, "b": {"requires": ["c", "a"]}}
    assert manifest.close({"a": "listed"}, graph)["c"] == "b requires it; a requires it; listed"


def test_no_package_needs_itself():
    graph = {
        name: [*entry.get("requires", ()), *entry.get("companions", ())]
        for name, entry in read_table("packages.toml")["distributions"].items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_closure_stops_at_what_nobody_requires():
    assert set(manifest.close({"a": "listed"}, {"z": {"requires": ["a"]}})) == {"a"}


def test_tvm_ffi_comes_with_xgrammar_on_ascend_and_not_on_xpu(tmp_path):
    assert load("ascend", tmp_path).packages["tvm_ffi"].why.startswith("xgrammar requires it")
    assert "xgrammar" in load("xpu", tmp_path).packages
    assert "tvm_ffi" not in load("xpu", tmp_path).packages


@pytest.mark.parametrize("platform", ["rocm", "ascend", "xpu", "cpu"])
@pytest.mark.parametrize("name", ["flashinfer", "deep_gemm", "cutlass", "cuda", "numba", "pynvml"])
def test_cuda_packages_are_on_cuda_only(platform, name, tmp_path):
    assert name in load("cuda", tmp_path).packages
    assert name not in load(platform, tmp_path).packages


@pytest.mark.parametrize("name", ["pytest", "hypothesis", "ray", "nixl_ep", "vllm", "accelerate"])
@pytest.mark.parametrize("platform", platforms.NAMES)
def test_what_no_install_brings_is_nowhere(platform, name, tmp_path):
    assert name not in load(platform, tmp_path).packages


def test_the_wheels_own_list_goes_before_the_data_on_cuda(wheel):
    loaded = load("cuda", wheel("0.5.23", "numpy", "brand-new-kernels==1.2"))
    assert "brand_new_kernels" in loaded.packages
    assert "flashinfer" not in loaded.packages


def test_a_wheel_carries_the_cuda_list_alone(wheel):
    assert "flashinfer" not in load("xpu", wheel("0.5.23", "flashinfer_python==0.7.2")).packages


def test_a_checkout_declares_for_the_platform(tmp_path):
    (tmp_path / "pyproject_npu.toml").write_text(
        '[project]\ndependencies = ["numpy", "odd-thing; python_version < \'3\'"]\n'
    )
    packages = load("ascend", tmp_path).packages
    assert "numpy" in packages
    assert "torch_npu" in packages, "the image brings it, listed or not"
    assert not {"transformers", "odd_thing"} & set(packages)


@pytest.mark.parametrize(
    ("version", "build"),
    [("0.5.16", "0.4.5"), ("0.5.19", "0.4.6.post1"), ("0.5.20.dev7", "0.4.7"), ("0.5.23", "0.4.10"), ("0.9", "0.4.10")],
)
def test_kernel_build_of_a_release(version, build, wheel):
    assert load("cuda", wheel(version, "numpy")).vendor["sgl_kernel"].version == build


def test_the_pinned_kernel_build_goes_first(wheel):
    assert load("cuda", wheel("0.5.23", "sglang-kernel==0.4.7")).vendor["sgl_kernel"].version == "0.4.7"


def test_an_unknown_version_gets_the_newest_build(tmp_path):
    assert load("ascend", tmp_path).vendor["sgl_kernel_npu"].version == "K1"


def test_get_device_accessible_ptr_came_with_0_4_9(tmp_path, wheel):
    assert "get_device_accessible_ptr" in symbols(load("cuda", tmp_path), "sgl_kernel.kvcacheio")
    assert "get_device_accessible_ptr" not in symbols(load("cuda", wheel("0.5.21", "numpy")), "sgl_kernel.kvcacheio")


@pytest.mark.parametrize("platform", ["cuda", "rocm", "xpu"])
def test_thirteen_transfer_functions(platform, tmp_path):
    names = symbols(load(platform, tmp_path), "sgl_kernel.kvcacheio")
    assert len([name for name in names if name.startswith("transfer_kv_")]) == 13


def test_names_that_only_one_platform_binds(tmp_path):
    assert "gelu_quick" in symbols(load("rocm", tmp_path), "sgl_kernel")
    assert "gelu_quick" not in symbols(load("cuda", tmp_path), "sgl_kernel")


def test_quantization_is_a_module_on_cuda_rocm_and_cpu_only(tmp_path):
    have = {name for name in ("cuda", "rocm", "xpu", "cpu") if "sgl_kernel.quantization" in modules_of(name, tmp_path)}
    assert have == {"cuda", "rocm", "cpu"}
    assert "sgl_kernel" not in load("ascend", tmp_path).vendor


def modules_of(platform, root):
    return load(platform, root).vendor["sgl_kernel"].modules


def test_rocm_has_the_wrapper_and_not_the_op(tmp_path):
    assert load("rocm", tmp_path).vendor["sgl_kernel"].missing_ops["ggml_moe_a8_vec"] == "ggml_moe_a8_vec"
    assert not load("cuda", tmp_path).vendor["sgl_kernel"].missing_ops
