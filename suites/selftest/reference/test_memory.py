import pytest
import torch

from reference.memory import allocate, check_budget, host_memory_budget

GIB = 1 << 30


def test_the_budget_leaves_a_reserve_and_is_shared():
    assert host_memory_budget(30 * GIB, ranks_per_host=4) == 5 * GIB


def test_there_is_no_negative_budget():
    assert host_memory_budget(GIB) == 0


def test_a_pool_beyond_the_budget_is_refused():
    with pytest.raises(ValueError, match="requested_bytes=11, budget_bytes=10"):
        check_budget(11, 10)


@pytest.mark.parametrize("budget", [10, None])
def test_a_pool_within_the_budget_is_fine(budget):
    assert check_budget(10, budget) is None


def test_buffers_start_on_a_memory_page():
    assert [allocate(n).data_ptr() % 4096 for n in (1, 5000)] == [0, 0]
    assert allocate(5000).equal(torch.zeros(5000, dtype=torch.uint8))
