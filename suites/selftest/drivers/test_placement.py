import pytest
import torch

from harness.sut.drivers.placement import place
from harness.sut.drivers.storage import flat_bytes, locate

HOST, DEVICE = torch.tensor([9, 8, 3, 2]), torch.tensor([0, 1, 2, 3])


def test_direct_layer_first_sorts_the_host_indices_and_keeps_pairs():
    host, device = place("direct", "layer_first", HOST, DEVICE, on="cpu")
    assert (host.tolist(), device.tolist()) == ([2, 3, 8, 9], [3, 2, 1, 0])


@pytest.mark.parametrize("io_backend", ["kernel_ascend", "no_such_backend"])
def test_other_backends_get_the_indices_as_they_are(io_backend):
    host, device = place(io_backend, "page_first_kv_split", HOST, DEVICE, on="meta")
    assert (host is HOST, device is DEVICE) == (True, True)


def test_kernel_indices_go_to_the_device():
    host, device = place("kernel", "layer_first", HOST, DEVICE, on="meta")
    assert (host.device.type, device.device.type) == ("meta", "meta")


def test_staged_write_back_keeps_the_host_indices_on_the_cpu():
    host, device = place("kernel", "page_first", HOST, DEVICE, on="meta", staged=True)
    assert (host.device.type, device.device.type) == ("cpu", "meta")


def test_a_pointer_is_located_in_its_buffer():
    buffers = {"k": torch.zeros(64, dtype=torch.uint8), "v": torch.zeros(64, dtype=torch.uint8)}
    assert locate(buffers, buffers["v"].data_ptr() + 16, 48) == ("v", 16)


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 1), (60, 5)])
def test_a_pointer_outside_its_buffer_is_the_pools_fault(offset, nbytes):
    buffers = {"k": torch.zeros(64, dtype=torch.uint8)}
    with pytest.raises(AssertionError, match="lie in none of its buffers"):
        locate(buffers, buffers["k"].data_ptr() + offset, nbytes)


def test_flat_bytes_copies():
    page = torch.zeros(2, 3, dtype=torch.bfloat16)
    flat = flat_bytes(page)
    page.fill_(1)
    assert (flat.numel(), int(flat.sum())) == (12, 0)
