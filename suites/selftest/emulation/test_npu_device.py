"""The device itself. Each test runs in a fork of this process: a device name can be given once per process."""

import copy
import os
import sys
import traceback
import types
import warnings

import numpy as np
import pytest
import torch

from harness.emulation import npu_device
from harness.emulation.doubles import ascend_kvcacheio_module, jit_loader
from harness.emulation.memory import AddressSpace
from harness.emulation.raw import raw
from harness.errors import InfrastructureError, WrongDevice, WrongIndexDevice

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture(scope="module")
def library():
    found = npu_device.build_or_reason()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def run_in_fork(function):
    """Run `function` in a child and raise what it raised."""
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs Python and torch only, no other thread
        child = os.fork()
    if child == 0:
        os.close(receiver)
        try:
            function()
            message = b""
        except BaseException:  # noqa: BLE001 - told to the parent
            message = traceback.format_exc().encode()
        with os.fdopen(sender, "wb") as stream:
            stream.write(message)
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as stream:
        message = stream.read().decode()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child died: {status}"
    assert not message, message


def device_module():
    module = types.ModuleType("torch.npu")
    module._is_in_bad_fork = lambda: False
    return module


@pytest.fixture
def on_npu(library):
    """Decorator: run a function at once, in a fork that has the device."""

    def run(function):
        def child():
            npu_device.load(library)
            sys.modules["torch.npu"] = torch.npu = device_module()
            function()

        run_in_fork(child)

    return run


def ramp(*shape):
    return torch.arange(float(np.prod(shape))).reshape(shape)


MIXED = "Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!"


def test_a_tensor_says_where_it_is(on_npu):
    @on_npu
    def _():
        tensor = torch.zeros(3, device="npu")
        assert (str(tensor.device), tensor.is_npu, tensor.is_cpu) == ("npu:0", True, False)
        assert str(tensor.untyped_storage().device) == "npu:0"


def test_loading_after_torch_ran_and_forking_after_loading(on_npu):
    @on_npu
    def _():
        tensor = ramp(4).to("npu")

        def grandchild():
            tensor.add_(1)
            assert tensor.cpu().tolist() == [1, 2, 3, 4]

        run_in_fork(grandchild)
        assert tensor.cpu().tolist() == [0, 1, 2, 3]


def test_loading_twice_does_nothing(library, on_npu):
    @on_npu
    def _():
        npu_device.load(library)
        assert npu_device.is_loaded()


def test_file_that_is_no_library(tmp_path):
    def child():
        (tmp_path / "lib.so").write_text("no library")
        with pytest.raises(InfrastructureError, match="delete it to have it built again"):
            npu_device.load(tmp_path / "lib.so")
        assert not npu_device.is_loaded()

    run_in_fork(child)


def test_copies_go_both_ways(on_npu):
    @on_npu
    def _():
        host = ramp(4, 6)
        device = torch.empty(4, 6, device="npu").copy_(host, non_blocking=True)
        assert torch.equal(device.cpu(), host)
        assert torch.equal(torch.empty(6, 4).copy_(device.t()), host.t())
        assert device.to("npu:0") is device


def test_memory_is_poisoned(on_npu):
    @on_npu
    def _():
        assert torch.empty(8, device="npu").cpu().isnan().all()
        assert torch.empty(8, dtype=torch.int64, pin_memory=True).eq(-1).all()
        assert torch.zeros(8, device="npu").cpu().eq(0).all()


def test_pinned_memory_is_known(on_npu):
    @on_npu
    def _():
        pinned = torch.empty(16, pin_memory=True)
        assert (pinned.is_pinned(), pinned[8:].is_pinned(), torch.empty(16).is_pinned()) == (True, True, False)
        assert torch.zeros(4).pin_memory().is_pinned()


def test_slices_and_views_share_memory(on_npu):
    @on_npu
    def _():
        tensor = torch.zeros(4, 3, 2, dtype=torch.bfloat16, device="npu")
        tensor[1:3].view(torch.int16).view(2, 6)[:, 2] = 7
        tensor.transpose(0, 1)[0, 0] = 1
        assert tensor.view(torch.int16).cpu().flatten().tolist()[8] == 7
        assert tensor[0, 0].cpu().tolist() == [1, 1]


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "uint64", "uint8"]
)
def test_dtypes(on_npu, name):
    @on_npu
    def _():
        tensor = torch.zeros(8, dtype=getattr(torch, name), device="npu")
        tensor.view(torch.uint8)[3] = 9
        assert tensor.view(torch.uint8)[:4].tolist() == [0, 0, 0, 9]


def test_pointer_table(on_npu):
    @on_npu
    def _():
        layers = [torch.zeros(4, device="npu") for _ in range(2)]
        table = torch.tensor([layer.data_ptr() for layer in layers], dtype=torch.uint64, device="npu")
        assert torch.cat([table, table]).tolist()[2:] == [layer.data_ptr() for layer in layers]


def test_indexing_on_the_device(on_npu):
    @on_npu
    def _():
        tensor, index = ramp(4, 2).to("npu"), torch.tensor([2, 0], device="npu")
        assert tensor[index].tolist() == [[4, 5], [0, 1]]
        assert tensor.index_select(0, index).tolist() == [[4, 5], [0, 1]]
        tensor.index_copy_(0, index, torch.ones(2, 2, device="npu"))
        tensor[index[:1]] = 9.0
        assert tensor.tolist() == [[1, 1], [2, 3], [9, 9], [6, 7]]


def test_cpu_indices_index_a_device_tensor(on_npu):
    @on_npu
    def _():
        assert ramp(4).to("npu")[torch.tensor([3, 1])].tolist() == [3, 1]


def test_device_indices_do_not_index_a_cpu_tensor(on_npu):
    @on_npu
    def _():
        with pytest.raises(RuntimeError, match="indices should be either on cpu or on the same device"):
            ramp(4)[torch.tensor([3, 1], device="npu")]


@pytest.mark.parametrize(
    "operation",
    [
        lambda npu, cpu: npu + cpu,
        lambda npu, cpu: npu.add_(cpu),
        lambda npu, cpu: torch.cat([npu, cpu]),
        torch.equal,
        lambda npu, cpu: npu.index_select(0, cpu.long()),
        lambda npu, cpu: npu.__setitem__(torch.arange(4), cpu),
        lambda npu, cpu: cpu.__setitem__(torch.arange(4), npu),
    ],
)
def test_mixing_devices_raises(on_npu, operation):
    @on_npu
    def _():
        with pytest.raises(RuntimeError, match=MIXED):
            operation(ramp(4).to("npu"), ramp(4))


def test_index_copy_wants_its_index_on_the_device(on_npu):
    @on_npu
    def _():
        with pytest.raises(RuntimeError, match="expected to be in the same device"):
            ramp(4).to("npu").index_copy_(0, torch.arange(4), ramp(4).to("npu"))


def test_cpu_scalar_mixes(on_npu):
    @on_npu
    def _():
        assert (ramp(2).to("npu") + torch.tensor(2.0)).tolist() == [2, 3]


def test_no_numpy_of_a_device_tensor(on_npu):
    @on_npu
    def _():
        with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
            ramp(4).to("npu").numpy()


def test_creation_and_arithmetic(on_npu):
    @on_npu
    def _():
        assert torch.arange(3, device="npu").add(torch.full((3,), 2, device="npu")).tolist() == [2, 3, 4]
        assert torch.stack([ramp(2).to("npu")] * 2).sum().item() == 2
        assert torch.add(ramp(2).to("npu"), 1, out=torch.empty(0, device="npu")).tolist() == [1, 2]


def test_deepcopy(on_npu):
    @on_npu
    def _():
        tensor = ramp(4).to("npu")
        assert copy.deepcopy(tensor).tolist() == tensor.tolist()


def test_streams_are_accepted(on_npu):
    @on_npu
    def _():
        ramp(4).to("npu").record_stream(torch.Stream(device="npu"))


def test_raw_is_the_same_memory(on_npu):
    @on_npu
    def _():
        tensor = ramp(4, 6).to("npu")
        alias = raw(tensor[1:, 2:])
        alias.numpy()[0, 0] = -1
        assert (alias.data_ptr(), alias.stride()) == (tensor[1:, 2:].data_ptr(), (6, 1))
        assert tensor[1, 2].item() == -1


def test_raw_keeps_the_memory_alive(on_npu):
    @on_npu
    def _():
        alias = raw(ramp(1 << 20).to("npu"))
        torch.empty(1 << 20, device="npu")
        assert alias[-1].item() == (1 << 20) - 1


def test_raw_of_a_cpu_tensor_is_itself():
    tensor = torch.zeros(3)
    assert raw(tensor) is tensor


def test_ascend_exchange_on_the_device(on_npu):
    @on_npu
    def _():
        memory, calls = AddressSpace(), []
        vendor = ascend_kvcacheio_module(memory, calls, "K0")
        device, host = ramp(2, 5, 4, 1, 3).to("npu"), torch.zeros(6, 2, 4, 1, 3, pin_memory=True)
        slots = torch.arange(4, 12), torch.arange(8, 16)
        v = torch.empty(0, device="npu"), torch.empty(0)
        way = vendor.TransferDirection.D2H
        vendor.transfer_kv_dim_exchange(*slots, device, host, *v, page_size=4, direction=way)
        assert torch.equal(host[2:4].transpose(0, 1), device[:, 1:3].cpu())
        with pytest.raises(WrongDevice, match="device_k lies on the host"):
            vendor.transfer_kv_dim_exchange(*slots, device.cpu(), host, *v, page_size=4, direction=way)
        with pytest.raises(WrongDevice, match="host_k lies on the device"):
            vendor.transfer_kv_dim_exchange(*slots, device, host.to("npu"), *v, page_size=4, direction=way)


def test_indices_left_on_the_cpu_are_caught(on_npu):
    @on_npu
    def _():
        wrappers = [("launch", "&HiCacheKernel<128, 4, 2, 1024>::run_one_mla")]
        module = jit_loader("cuda", AddressSpace(), [])("hicache", cuda_wrappers=wrappers)
        cache, other, index = (ramp(9, 32).to("npu"), torch.zeros(9, 32), torch.arange(3, device="npu"))
        module.launch(cache, index, other, index)
        assert cache[:3].sum().item() == 0
        with pytest.raises(WrongIndexDevice, match=r"indices_src lies on the host \(cpu\)"):
            module.launch(cache, index, other, torch.arange(3))
