"""The direct transfers of sgl_kernel.kvcacheio against loops over slots and pages, and their preconditions."""

import pytest
import torch

from harness.emulation.doubles import kvcacheio_functions
from harness.errors import BadCall, Misaligned, OutOfRegion, WrongDevice

LAYERS, PAGES, PAGE, ROW = 3, 8, 4, 18
SLOTS = PAGES * PAGE


@pytest.fixture(params=["cuda", "rocm", "xpu"])
def aot(arena, request):
    return kvcacheio_functions(request.param, arena.memory, arena.calls)


@pytest.fixture
def cuda(arena):
    return kvcacheio_functions("cuda", arena.memory, arena.calls)


@pytest.fixture
def pages(arena):
    return arena.pages(5, PAGES, PAGE), arena.pages(5, PAGES, PAGE)


@pytest.fixture
def pools(arena):
    """Layers of a device pool (two bytes an element, an odd row), and a page_first_direct host buffer."""
    device = [arena.buffer(SLOTS, 1, 9, dtype=torch.int16, label=f"device {layer}") for layer in range(LAYERS)]
    return device, arena.buffer(PAGES, LAYERS, PAGE, 1, 9, dtype=torch.int16, kind="host", label="host")


# ---- transfer_kv_direct


def test_direct_moves_tokens_in_any_order(arena, aot):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.layers(LAYERS, SLOTS, ROW, kind="host")
    indices, expected = (arena.slots(12, SLOTS), arena.slots(12, SLOTS)), torch.stack(dst)
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[layer, other] = src[layer][one]
    aot["transfer_kv_direct"](src, dst, *indices, page_size=4)
    assert torch.equal(torch.stack(dst), expected)


def test_direct_takes_strided_layers(arena, aot):
    src, dst = arena.buffer(SLOTS, ROW), arena.buffer(SLOTS, LAYERS, ROW, kind="host")
    indices, expected = (arena.slots(12, SLOTS), arena.slots(12, SLOTS)), dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other, 1] = src[one]
    aot["transfer_kv_direct"]([src], [dst[:, 1]], *indices, 4)
    assert torch.equal(dst, expected)


def test_direct_without_indices_does_nothing(arena, aot):
    src, dst = arena.layers(1, SLOTS, ROW), arena.layers(1, SLOTS, ROW)
    before = dst[0].clone()
    aot["transfer_kv_direct"](src, dst, torch.arange(0), torch.arange(0), 4)
    assert torch.equal(dst[0], before)


@pytest.fixture
def direct(arena, cuda):
    src, dst = arena.layers(2, SLOTS, ROW), arena.layers(2, SLOTS, ROW, kind="host")
    defaults = {
        "src_layers": src,
        "dst_layers": dst,
        "src_indices": torch.arange(4),
        "dst_indices": torch.arange(4),
        "page_size": 4,
    }
    before = torch.stack(dst)

    def call(**changed):
        try:
            cuda["transfer_kv_direct"](**{**defaults, **changed})
        finally:
            assert torch.equal(torch.stack(dst), before)

    call.src, call.dst = src, dst
    return call


def test_direct_layers_must_pair(direct):
    with pytest.raises(BadCall, match="2 source and 1 destination layers"):
        direct(dst_layers=direct.dst[:1])


@pytest.mark.parametrize("layers", [[], None, torch.zeros(3)])
def test_direct_wants_lists(direct, layers):
    with pytest.raises(BadCall, match="expected a list of tensors"):
        direct(src_layers=layers)


def test_direct_wants_whole_pages(direct):
    with pytest.raises(Misaligned, match="the number of indices is 4; expected a multiple of 3"):
        direct(page_size=3)


def test_direct_wants_a_positive_page_size(direct):
    with pytest.raises(BadCall, match="page_size is 0"):
        direct(page_size=0)


def test_direct_wants_int64(direct):
    with pytest.raises(BadCall, match=r"dst_indices is torch\.int32"):
        direct(dst_indices=torch.arange(4, dtype=torch.int32))


def test_direct_indices_must_pair(direct):
    with pytest.raises(BadCall, match="8 source and 4 destination indices"):
        direct(src_indices=torch.arange(8))


def test_direct_negative_index(direct):
    with pytest.raises(OutOfRegion, match="src_indices: index -2"):
        direct(src_indices=torch.arange(4) - 2)


def test_direct_index_behind_a_layer(direct):
    with pytest.raises(OutOfRegion, match=r"source layer 0, slot 32: bytes 576\.\.594 lie outside"):
        direct(src_indices=torch.arange(4) + SLOTS - 3)


def test_direct_would_convert_dtypes(direct):
    with pytest.raises(BadCall, match="the copy would convert or broadcast"):
        direct(src_layers=[layer.view(torch.int16) for layer in direct.src])


def test_direct_would_broadcast_rows(direct):
    with pytest.raises(BadCall, match=r"source rows of \(1,\) .* destination rows of \(18,\)"):
        direct(src_layers=[layer[:, :1].contiguous() for layer in direct.src])


def test_direct_wants_contiguous_rows(direct):
    with pytest.raises(BadCall, match="expected contiguous rows"):
        direct(src_layers=[layer[:, ::2] for layer in direct.src])


def test_direct_duplicated_destination(direct):
    with pytest.raises(BadCall, match="written to the same bytes"):
        direct(dst_indices=torch.tensor([0, 1, 2, 2]))


# ---- page-first


def test_lf_pf_moves_whole_pages(aot, pages, pools):
    device, host = pools
    expected = host.clone()
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in pages), strict=True):
            expected[other // PAGE, layer, other % PAGE] = device[layer][one]
    aot["transfer_kv_all_layer_direct_lf_pf"](device, [host], *pages, PAGE)
    assert torch.equal(host, expected)


@pytest.mark.parametrize("layer", range(LAYERS))
def test_pf_lf_moves_whole_pages(aot, pages, pools, layer):
    device, host = pools
    expected = device[layer].clone()
    for one, other in zip(*(side.tolist() for side in pages), strict=True):
        expected[other] = host[one // PAGE, layer, one % PAGE]
    aot["transfer_kv_per_layer_direct_pf_lf"]([host], [device[layer]], *pages, layer, PAGE)
    assert torch.equal(device[layer], expected)


def test_lf_pf_of_k_and_v(arena, aot, pages):
    layers = arena.layers(2 * LAYERS, SLOTS, ROW)
    hosts = [arena.buffer(PAGES, LAYERS, PAGE, ROW, kind="host") for _ in "kv"]
    expected = [host.clone() for host in hosts]
    for number, layer in enumerate(layers):
        for one, other in zip(*(side.tolist() for side in pages), strict=True):
            expected[number // LAYERS][other // PAGE, number % LAYERS, other % PAGE] = layer[one]
    aot["transfer_kv_all_layer_direct_lf_pf"](layers, hosts, *pages, PAGE)
    assert torch.equal(torch.stack(hosts), torch.stack(expected))


def test_pf_lf_of_k_and_v(arena, aot, pages):
    k, v = arena.layers(2, SLOTS, ROW)
    hosts = [arena.buffer(PAGES, LAYERS, PAGE, ROW, kind="host") for _ in "kv"]
    expected = [k.clone(), v.clone()]
    for copy, host in zip(expected, hosts, strict=True):
        for one, other in zip(*(side.tolist() for side in pages), strict=True):
            copy[other] = host[one // PAGE, 2, one % PAGE]
    aot["transfer_kv_per_layer_direct_pf_lf"](hosts, [k, v], *pages, 2, PAGE)
    assert torch.equal(torch.stack([k, v]), torch.stack(expected))


def test_a_device_page_may_start_anywhere(cuda, pools):
    device, host = pools
    cuda["transfer_kv_all_layer_direct_lf_pf"](device, [host], torch.arange(3, 7), torch.arange(4, 8), PAGE)
    assert torch.equal(host[1, 2], device[2][3:7])


@pytest.fixture
def backup(cuda, pools):
    device, host = pools
    defaults = {
        "src_ptrs": device,
        "dst_ptrs": [host],
        "src_indices": torch.arange(8, 16),
        "dst_indices": torch.arange(8),
        "page_size": PAGE,
    }
    before = host.clone()

    def call(**changed):
        try:
            cuda["transfer_kv_all_layer_direct_lf_pf"](**{**defaults, **changed})
        finally:
            assert torch.equal(host, before)

    call.device, call.host = device, host
    return call


def test_host_page_start_must_be_aligned(backup):
    with pytest.raises(Misaligned, match=r"dst_indices, page 0 of the call, starts at slot 1; expected a multiple of"):
        backup(dst_indices=torch.arange(1, 9))


@pytest.mark.parametrize("side", ["src_indices", "dst_indices"])
def test_unread_indices_of_a_page_must_follow(backup, side):
    shuffled = torch.tensor([8, 9, 10, 11, 12, 14, 13, 15])
    with pytest.raises(BadCall, match=f"{side}, page 1 of the call: slot 14 in position 1 after 12; expected slot 13"):
        backup(**{side: shuffled})


def test_host_page_out_of_range(backup):
    with pytest.raises(OutOfRegion, match=r"host layer 0, page 8: bytes 1728\.\.1800 lie outside region"):
        backup(dst_indices=torch.arange(28, 36))


def test_device_page_out_of_range(backup):
    with pytest.raises(OutOfRegion, match="device layer 0, slot 29"):
        backup(src_indices=torch.arange(25, 33))


def test_negative_page(backup):
    with pytest.raises(OutOfRegion, match="dst_indices: index -4"):
        backup(dst_indices=torch.arange(-4, 4))


def test_same_page_twice(backup):
    with pytest.raises(BadCall, match="written to the same bytes"):
        backup(dst_indices=torch.arange(4).repeat(2))


def test_page_size_of_another_pool(backup):
    with pytest.raises(BadCall, match=r"expected a contiguous \(page, layer, 2, …\) buffer"):
        backup(page_size=2)


def test_more_layers_than_the_host_has(backup):
    with pytest.raises(BadCall, match=r"layers 0\.\.4 of a buffer with 3 layers"):
        backup(src_ptrs=[*backup.device, backup.device[0].clone()])


def test_layers_of_different_rows(arena, backup):
    odd = arena.buffer(SLOTS, 1, 8, dtype=torch.int16)
    with pytest.raises(BadCall, match=r"src_ptrs\[1\] has rows of \(1, 8\)"):
        backup(src_ptrs=[backup.device[0], odd])


def test_layers_with_gaps(backup):
    gaps = torch.zeros(SLOTS, 2, 9, dtype=torch.int16)[:, :1]
    with pytest.raises(BadCall, match="expected contiguous rows"):
        backup(src_ptrs=[gaps])


def test_host_of_another_dtype(backup):
    with pytest.raises(BadCall, match="the copy would convert or broadcast"):
        backup(dst_ptrs=[backup.host.view(torch.bfloat16)])


def test_host_pages_must_be_contiguous(backup):
    with pytest.raises(BadCall, match="expected a contiguous"):
        backup(dst_ptrs=[backup.host.transpose(0, 1)])


@pytest.mark.parametrize("hosts", [2, 3])
def test_k_and_v_lists_must_fit(backup, hosts):
    with pytest.raises(BadCall, match=f"{hosts} page-first buffers and 3 layer tensors"):
        backup(dst_ptrs=[backup.host] * hosts) if hosts == 2 else backup(dst_ptrs=[backup.host] * 3)


def test_operands_on_the_wrong_side(backup):
    with pytest.raises(WrongDevice, match=r"src_ptrs\[0\] lies on the host"):
        backup(src_ptrs=[backup.host], dst_ptrs=backup.device[:1])


@pytest.mark.parametrize("layer", [-1, LAYERS])
def test_loaded_layer_must_exist(cuda, pools, layer):
    device, host = pools
    with pytest.raises(BadCall, match="expected layers inside the buffer"):
        cuda["transfer_kv_per_layer_direct_pf_lf"]([host], device[:1], torch.arange(4), torch.arange(4), layer, PAGE)


def test_loaded_host_page_must_be_aligned(cuda, pools):
    device, host = pools
    with pytest.raises(Misaligned, match="src_indices, page 0 of the call, starts at slot 2"):
        cuda["transfer_kv_per_layer_direct_pf_lf"]([host], device[:1], torch.arange(2, 6), torch.arange(4), 0, PAGE)
