import pytest
import torch

from reference.slots import SlotAllocator


@pytest.fixture
def allocator():
    return SlotAllocator(12, 4)


def test_slots_are_handed_out_from_the_front(allocator):
    assert allocator.alloc(8).tolist() == list(range(8))
    assert allocator.available_size() == 4


def test_an_exhausted_pool_says_none_and_keeps_what_it_has(allocator):
    allocator.alloc(8)
    assert allocator.alloc(8) is None
    assert allocator.available_size() == 4


def test_freed_slots_come_back_last(allocator):
    first = allocator.alloc(4)
    assert allocator.free(first) == 4
    assert allocator.alloc(12).tolist() == [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3]


def test_clear_forgets_everything(allocator):
    allocator.alloc(12)
    allocator.clear()
    assert allocator.alloc(12).tolist() == list(range(12))


def test_nothing_is_a_fine_amount(allocator):
    assert allocator.alloc(0).tolist() == []
    assert allocator.free(torch.zeros(0, dtype=torch.int64)) == 0


@pytest.mark.parametrize(
    ("need", "text"), [(6, "need_size=6 must be a multiple of 4"), (-4, "need_size=-4 must be at least 0")]
)
def test_a_bad_need_is_refused(allocator, need, text):
    with pytest.raises(ValueError, match=text):
        allocator.alloc(need)


def test_a_double_free_is_refused_and_frees_nothing(allocator):
    slots = allocator.alloc(8)
    allocator.free(slots[:4])
    with pytest.raises(ValueError, match=r"double free: slots \[0, 1, 2, 3\]"):
        allocator.free(slots)
    assert allocator.available_size() == 8


def test_a_slot_named_twice_is_a_double_free(allocator):
    allocator.alloc(4)
    with pytest.raises(ValueError, match="names a slot twice"):
        allocator.free(torch.tensor([1, 1]))


def test_a_slot_outside_is_refused(allocator):
    with pytest.raises(IndexError, match=r"indices.0.=12 lies outside 0..11"):
        allocator.free(torch.tensor([12]))


def test_a_double_alloc_is_refused(allocator):
    allocator.alloc(4)
    allocator._free = torch.arange(12)
    with pytest.raises(ValueError, match="double alloc"):
        allocator.alloc(4)


def test_a_caller_that_writes_its_slots_does_no_harm(allocator):
    allocator.alloc(4).fill_(99)
    allocator.free(torch.arange(4))
    assert allocator.alloc(12).max() == 11
