"""The reference behind the driver port, on legal combinations of every platform."""

import pytest
import torch

from harness.checks import kv_cases
from harness.checks.ledger import Ledger
from harness.checks.meter import Meter
from harness.checks.transfer_plan import scattered
from harness.errors import Unsupported
from harness.sut.drivers.port import PoolRequest
from harness.sut.drivers.reference import ReferenceDriver


@pytest.mark.parametrize("platform", ["cuda", "rocm", "ascend", "xpu"])
def test_legal_combinations_make_a_round_trip(platform):
    for number, case in enumerate(kv_cases.legal(platform)[::5]):
        pair, meter = ReferenceDriver(platform).build(case.request()), Meter()
        ledger, plan = Ledger(pair, meter), scattered(pair, number)
        pair.backup(plan.host, plan.device)
        ledger.backup(plan.host, plan.device)
        ledger.fill_device("device after the backup")
        for layer in range(pair.geometry.total_layers):
            pair.load(plan.host, plan.device, layer)
        ledger.load(plan.host, plan.device)
        ledger.check(case.id)
        assert meter.bytes


def test_no_combination_is_legal_on_cpu():
    assert kv_cases.legal("cpu") == []


@pytest.fixture
def pair(geometry):
    g = geometry(index_head_dim=16, drafts=1)
    return ReferenceDriver("ascend").build(PoolRequest(g, "page_first_kv_split", "kernel_ascend"))


def test_the_port_speaks_of_bytes(pair):
    assert pair.host_components() == ("k", "v", "index_k")
    assert pair.size_per_token() == 4 * 64 + 3 * 32
    assert pair.get_data_page(0).numel() == pair.get_dummy_flat_data_page().numel() == 4 * pair.size_per_token()
    assert pair.get_page_buffer_meta(torch.arange(4, 8))[1] == ("v", 4 * 4 * 16, 4 * 4 * 16)
    assert [infos[0] for infos in pair.get_contiguous_buf_infos()] == ["k", "v", "index_k"]


def test_the_port_hands_out_slots(pair):
    slots = pair.alloc(8)
    assert (slots.tolist(), pair.available_size()) == (list(range(8)), 28)
    assert pair.free(slots) == 8
    pair.clear()
    pair.close()


def test_a_page_goes_out_and_in(pair):
    page = ~pair.get_data_page(4)
    pair.set_from_flat_data_page(8, page)
    assert pair.get_data_page(8).equal(page)
    assert not pair.is_stride_page_aligned(4096)


def test_a_pool_that_is_not_there_yet_is_unsupported(geometry):
    with pytest.raises(Unsupported, match="the reference has no mha pool yet"):
        ReferenceDriver("cuda").build(PoolRequest(geometry(), "page_first", "kernel", pool="mha"))
