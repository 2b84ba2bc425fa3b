import gc
import weakref

import pytest
import torch

from harness.emulation.memory import AddressSpace
from harness.errors import OutOfRegion


@pytest.fixture
def memory():
    return AddressSpace()


def test_region_is_the_exact_range_of_a_view(memory):
    buffer = torch.zeros(4, 10, dtype=torch.int16)
    region = memory.register(buffer[1:3], label="middle", kind="device")
    assert (region.start, region.nbytes) == (buffer.data_ptr() + 20, 40)


def test_region_shares_the_bytes(memory):
    buffer = torch.zeros(8, dtype=torch.uint8)
    memory.register(buffer[2:6], label="middle", kind="device").data[:] = 7
    assert buffer.tolist() == [0, 0, 7, 7, 7, 7, 0, 0]


def test_address_after_the_end_is_in_no_region(memory):
    region = memory.register(torch.zeros(16, dtype=torch.uint8), label="pool", kind="host")
    assert memory.resolve(region.end - 1, what="x") is region
    with pytest.raises(OutOfRegion, match=r"x: address 0x\w+ lies in no registered region; 0 bytes after .*'pool'"):
        memory.resolve(region.end, what="x")


def test_address_before_the_start_is_in_no_region(memory):
    region = memory.register(torch.zeros(16, dtype=torch.uint8), label="pool", kind="host")
    with pytest.raises(OutOfRegion, match="expected the address of a pool buffer"):
        memory.resolve(region.start - 1, what="x")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_smallest_region_around_an_address_counts(memory, order):
    buffer = torch.zeros(3, 8, dtype=torch.uint8)
    views = {0: ("whole", buffer), 1: ("layer 1", buffer[1]), 2: ("tail", buffer[1:])}
    for number in order:
        memory.register(views[number][1], label=views[number][0], kind="device")
    found = [memory.resolve(buffer[layer].data_ptr(), what="x").label for layer in range(3)]
    assert found == ["whole", "layer 1", "tail"]


def test_long_region_is_found_behind_many_short_ones(memory):
    buffer = torch.zeros(64, 4, dtype=torch.uint8)
    whole = memory.register(buffer, label="whole", kind="host")
    for row in range(0, 60, 2):
        memory.register(buffer[row], label=f"row {row}", kind="host")
    assert memory.find(buffer[63].data_ptr()) is whole


def test_a_smaller_region_registered_later_counts(memory):
    buffer = torch.zeros(3, 8, dtype=torch.uint8)
    memory.register(buffer, label="whole", kind="device")
    assert memory.find(buffer[1].data_ptr()).label == "whole"
    memory.register(buffer[1], label="layer 1", kind="device")
    assert memory.find(buffer[1].data_ptr()).label == "layer 1"


def test_view_with_gaps_is_refused(memory):
    with pytest.raises(ValueError, match="has gaps"):
        memory.register(torch.zeros(4, 4)[:, :2], label="gaps", kind="host")


def test_unknown_kind_is_refused(memory):
    with pytest.raises(ValueError, match="expected 'device' or 'host'"):
        memory.register(torch.zeros(4), label="x", kind="pinned")


def test_empty_view_contains_no_address(memory):
    region = memory.register(torch.zeros(4, 0), label="v of width 0", kind="device")
    assert region.nbytes == 0
    assert memory.regions == ()


def test_memory_lives_while_registered_and_not_after_clear(memory):
    buffer = torch.zeros(16, dtype=torch.uint8)
    storage = weakref.ref(buffer.untyped_storage())
    memory.register(buffer, label="pool", kind="device")
    start = buffer.data_ptr()
    del buffer
    gc.collect()
    assert memory.resolve(start, what="x").data.sum() == 0
    memory.clear()
    assert memory.find(start) is None
    assert storage() is None


def test_forgotten_region_is_gone(memory):
    region = memory.register(torch.zeros(4), label="x", kind="host")
    memory.find(region.start)
    memory.forget(region)
    memory.forget(region)
    assert memory.find(region.start) is None


def test_kind_of_a_tensor_is_that_of_its_region(memory):
    buffer = torch.zeros(4, 4)
    memory.register(buffer, label="x", kind="host")
    assert memory.kind_of(buffer[2:]) == "host"
    assert memory.kind_of(torch.zeros(4)) is None
