"""The kernels of sgl_kernel.kvcacheio against loops over slots, and every precondition violated once."""

import inspect

import pytest
import torch

from harness.emulation.doubles import kvcacheio_functions
from harness.errors import BadCall, Misaligned, OutOfRegion, UsageError, WrongDevice, WrongIndexDevice

LAYERS, SLOTS, COUNT = 3, 50, 21
WIDTHS = [8, 24, 576, 656, 1152]


@pytest.fixture(params=["cuda", "rocm", "xpu"])
def aot(arena, request):
    return kvcacheio_functions(request.param, arena.memory, arena.calls)


@pytest.fixture
def cuda(arena):
    return kvcacheio_functions("cuda", arena.memory, arena.calls)


@pytest.fixture
def indices(arena):
    return arena.slots(COUNT, SLOTS), arena.slots(COUNT, SLOTS)


@pytest.mark.parametrize("row", WIDTHS)
def test_per_layer_mla(arena, aot, indices, row):
    src, dst = arena.buffer(SLOTS, row, kind="host"), arena.buffer(SLOTS, row)
    expected = dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other] = src[one]
    aot["transfer_kv_per_layer_mla"](src, dst, *indices, item_size=row)
    assert torch.equal(dst, expected)
    assert arena.calls == ["aot.transfer_kv_per_layer_mla"]


@pytest.mark.parametrize("row", WIDTHS)
def test_per_layer(arena, aot, indices, row):
    k_src, v_src, k_dst, v_dst = (arena.buffer(SLOTS, row) for _ in range(4))
    expected = [k_dst.clone(), v_dst.clone()]
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[0][other], expected[1][other] = k_src[one], v_src[one]
    aot["transfer_kv_per_layer"](k_src, k_dst, v_src, v_dst, *indices, row)
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


@pytest.mark.parametrize("row", WIDTHS)
def test_all_layer_mla(arena, aot, table, indices, row):
    src, dst = arena.layers(LAYERS, SLOTS, row), arena.layers(LAYERS, SLOTS, row, kind="host")
    expected = [layer.clone() for layer in dst]
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[layer][other] = src[layer][one]
    aot["transfer_kv_all_layer_mla"](table(src), table(dst), *indices, item_size=row, num_layers=LAYERS)
    assert torch.equal(torch.stack(dst), torch.stack(expected))


def test_all_layer(arena, aot, table, indices):
    k_src, v_src, k_dst, v_dst = (arena.layers(LAYERS, SLOTS, 24) for _ in range(4))
    expected = torch.stack(k_dst), torch.stack(v_dst)
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[0][layer, other], expected[1][layer, other] = k_src[layer][one], v_src[layer][one]
    aot["transfer_kv_all_layer"](table(k_src), table(k_dst), table(v_src), table(v_dst), *indices, 24, LAYERS)
    assert torch.equal(torch.stack(k_dst), expected[0])
    assert torch.equal(torch.stack(v_dst), expected[1])


@pytest.mark.parametrize("row", WIDTHS)
def test_all_layer_mla_lf_pf(arena, aot, table, indices, row):
    src, dst = arena.layers(LAYERS, SLOTS, row), arena.buffer(SLOTS, LAYERS + 1, row, kind="host")
    expected = dst.clone()
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[other, layer] = src[layer][one]
    aot["transfer_kv_all_layer_mla_lf_pf"](
        table(src), dst, *indices, item_size=row, dst_layout_dim=row * (LAYERS + 1), num_layers=LAYERS
    )
    assert torch.equal(dst, expected)


def test_all_layer_lf_pf(arena, aot, table, indices):
    k_src, v_src = arena.layers(LAYERS, SLOTS, 24), arena.layers(LAYERS, SLOTS, 24)
    k_dst, v_dst = arena.buffer(SLOTS, LAYERS, 24, kind="host"), arena.buffer(SLOTS, LAYERS, 24, kind="host")
    expected = k_dst.clone(), v_dst.clone()
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[0][other, layer], expected[1][other, layer] = k_src[layer][one], v_src[layer][one]
    aot["transfer_kv_all_layer_lf_pf"](table(k_src), k_dst, table(v_src), v_dst, *indices, 24, 24 * LAYERS, LAYERS)
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


@pytest.mark.parametrize("layer", range(LAYERS))
def test_per_layer_mla_pf_lf(arena, aot, indices, layer):
    src, dst = arena.buffer(SLOTS, LAYERS, 656, kind="host"), arena.buffer(SLOTS, 656)
    expected = dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other] = src[one, layer]
    aot["transfer_kv_per_layer_mla_pf_lf"](
        src, dst, *indices, layer_id=layer, item_size=656, src_layout_dim=656 * LAYERS
    )
    assert torch.equal(dst, expected)


def test_per_layer_pf_lf(arena, aot, indices):
    k_src, v_src = arena.buffer(SLOTS, LAYERS, 24, kind="host"), arena.buffer(SLOTS, LAYERS, 24, kind="host")
    k_dst, v_dst = arena.buffer(SLOTS, 24), arena.buffer(SLOTS, 24)
    expected = k_dst.clone(), v_dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[0][other], expected[1][other] = k_src[one, 2], v_src[one, 2]
    aot["transfer_kv_per_layer_pf_lf"](k_src, k_dst, v_src, v_dst, *indices, 2, 24, 24 * LAYERS)
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


PAGES, PAGE, HEADS, HEAD = 10, 5, 4, 24


def test_all_layer_lf_ph(arena, aot, table, indices):
    k_src, v_src = (arena.layers(LAYERS, SLOTS, HEADS * HEAD) for _ in range(2))
    k_dst, v_dst = (arena.buffer(PAGES, HEADS, PAGE, LAYERS, HEAD, kind="host") for _ in range(2))
    expected = k_dst.clone(), v_dst.clone()
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            for copy, src in zip(expected, (k_src, v_src), strict=True):
                copy[other // PAGE, :, other % PAGE, layer] = src[layer][one].view(HEADS, HEAD)
    row = HEADS * HEAD
    aot["transfer_kv_all_layer_lf_ph"](
        table(k_src), k_dst, table(v_src), v_dst, *indices, row, row * LAYERS, LAYERS, PAGE, HEADS
    )
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


def test_per_layer_ph_lf(arena, aot, indices):
    k_src, v_src = (arena.buffer(PAGES, HEADS, PAGE, LAYERS, HEAD, kind="host") for _ in range(2))
    k_dst, v_dst = arena.buffer(SLOTS, HEADS, HEAD), arena.buffer(SLOTS, HEADS, HEAD)
    expected = k_dst.clone(), v_dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        for copy, src in zip(expected, (k_src, v_src), strict=True):
            copy[other] = src[one // PAGE, :, one % PAGE, 1]
    row = HEADS * HEAD
    aot["transfer_kv_per_layer_ph_lf"](k_src, k_dst, v_src, v_dst, *indices, 1, row, row * LAYERS, PAGE, HEADS)
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


def test_the_device_accessible_pointer_is_the_hosts_own(arena, cuda):
    buffer = arena.buffer(8)
    assert cuda["get_device_accessible_ptr"](buffer, 0) == buffer.data_ptr()
    with pytest.raises(ValueError, match="device_index is -1"):
        cuda["get_device_accessible_ptr"](buffer, -1)


# ---- signatures


def test_cuda_defaults(cuda):
    parameters = inspect.signature(cuda["transfer_kv_per_layer"]).parameters
    assert [*parameters][-3:] == ["item_size", "block_quota", "num_warps_per_block"]
    assert (parameters["block_quota"].default, parameters["num_warps_per_block"].default) == (2, 32)


def test_rocm_launches_half_the_warps(arena):
    function = kvcacheio_functions("rocm", arena.memory, arena.calls)["transfer_kv_all_layer_mla"]
    assert inspect.signature(function).parameters["num_warps_per_block"].default == 16


def test_xpu_has_its_own_launch_parameters(arena):
    functions = kvcacheio_functions("xpu", arena.memory, arena.calls)
    parameters = inspect.signature(functions["transfer_kv_all_layer_mla"]).parameters
    assert {name: parameters[name].default for name in [*parameters][-2:]} == {"block_quota": 16, "sgs_per_wg": 32}
    assert "get_device_accessible_ptr" not in functions


def test_thirteen_transfers(aot):
    assert len([name for name in aot if name.startswith("transfer_kv_")]) == 13


def test_unknown_keyword_is_a_type_error(arena, cuda, indices):
    src = arena.buffer(SLOTS, 8)
    with pytest.raises(
        TypeError, match=r"transfer_kv_per_layer_mla\(\) got an unexpected keyword argument 'page_size'"
    ):
        cuda["transfer_kv_per_layer_mla"](src, src, *indices, item_size=8, page_size=4)


def test_missing_argument_is_a_type_error(arena, cuda):
    with pytest.raises(TypeError, match="missing a required argument: 'src_indices'"):
        cuda["transfer_kv_per_layer_mla"](arena.buffer(8), arena.buffer(8))


def test_platform_without_these_kernels(arena):
    with pytest.raises(UsageError, match="no transfer kernels on 'cpu'"):
        kvcacheio_functions("cpu", arena.memory, arena.calls)


# ---- preconditions


@pytest.fixture
def one(arena, cuda):
    """Call transfer_kv_per_layer_mla with one argument changed."""
    defaults = {
        "src": arena.buffer(SLOTS, 16, label="host pool", kind="host"),
        "dst": arena.buffer(SLOTS, 16, label="device pool"),
        "src_indices": torch.arange(4),
        "dst_indices": torch.arange(4),
        "item_size": 16,
    }
    before = defaults["dst"].clone()

    def call(**changed):
        try:
            cuda["transfer_kv_per_layer_mla"](**{**defaults, **changed})
        finally:
            assert torch.equal(defaults["dst"], before)

    return call


def test_indices_must_be_int64(one):
    with pytest.raises(BadCall, match=r"src_indices is torch\.int32; expected torch\.int64"):
        one(src_indices=torch.arange(4, dtype=torch.int32))


def test_indices_must_be_a_tensor(one):
    with pytest.raises(BadCall, match="dst_indices is list; expected a tensor"):
        one(dst_indices=[0, 1, 2, 3])


def test_indices_must_be_flat(one):
    with pytest.raises(BadCall, match="expected a contiguous 1-D tensor"):
        one(dst_indices=torch.arange(8)[::2])


def test_indices_must_pair(one):
    with pytest.raises(BadCall, match="4 source and 3 destination indices"):
        one(dst_indices=torch.arange(3))


def test_indices_known_to_be_on_the_host_are_refused(arena, one):
    host = torch.arange(4)
    arena.memory.register(host, label="host indices", kind="host")
    with pytest.raises(WrongIndexDevice, match="src_indices lies on the host"):
        one(src_indices=host)


def test_no_index_kills_the_launcher(one):
    with pytest.raises(BadCall, match="the index list is empty"):
        one(src_indices=torch.arange(0), dst_indices=torch.arange(0))


def test_negative_index(one):
    with pytest.raises(OutOfRegion, match="src_indices: index -1"):
        one(src_indices=torch.tensor([0, -1, 2, 3]))


def test_index_behind_the_pool(one):
    with pytest.raises(
        OutOfRegion, match=r"aot.transfer_kv_per_layer_mla: source, slot 50: bytes 800\.\.816 lie outside"
    ):
        one(src_indices=torch.tensor([0, 1, 2, 50]))


def test_duplicated_destination(one):
    with pytest.raises(BadCall, match="destination, slot 1 and destination, slot 1"):
        one(dst_indices=torch.tensor([0, 1, 1, 3]))


def test_item_size_of_whole_words(one):
    with pytest.raises(Misaligned, match="item_size is 12; expected a multiple of 8"):
        one(item_size=12)


@pytest.mark.parametrize("size", [0, -8, None, True, 16.0])
def test_item_size_is_positive(one, size):
    with pytest.raises(BadCall, match="expected a positive integer"):
        one(item_size=size)


def test_misaligned_base_address(arena, one):
    shifted = arena.buffer(SLOTS * 16 + 4)[4:].view(SLOTS, 16)
    with pytest.raises(Misaligned, match="src: the address"):
        one(src=shifted)


@pytest.mark.parametrize("launch", [{"block_quota": 0}, {"num_warps_per_block": 0}])
def test_launch_parameters_are_positive(one, launch):
    with pytest.raises(BadCall, match="expected a positive integer"):
        one(**launch)


def test_block_of_too_many_threads(one):
    with pytest.raises(BadCall, match="1056 threads a block"):
        one(num_warps_per_block=33)


def test_view_bounds_hold_inside_a_bigger_region(arena, one):
    pool = arena.buffer(3, SLOTS, 16, label="whole pool", kind="host")
    with pytest.raises(OutOfRegion, match="'whole pool, as passed in src'"):
        one(src=pool[1], src_indices=torch.tensor([0, 1, 2, SLOTS]))


def test_buffer_of_which_only_the_first_layer_is_registered(arena, cuda):
    pool, dst = torch.zeros(2, SLOTS, 16, dtype=torch.uint8), arena.buffer(SLOTS, 16)
    arena.memory.register(pool[0], label="layer 0", kind="host")
    cuda["transfer_kv_per_layer_mla"](pool, dst, torch.tensor([SLOTS + 3]), torch.tensor([1]), 16)
    assert dst[1].sum() == 0


def test_call_within_one_buffer_that_reads_what_it_writes(arena, cuda):
    pool = arena.buffer(SLOTS, 16)
    with pytest.raises(BadCall, match="is read from bytes that the same call writes"):
        cuda["transfer_kv_per_layer_mla"](pool, pool, torch.tensor([0, 1]), torch.tensor([1, 2]), 16)


@pytest.fixture
def every(arena, cuda, table):
    """Call transfer_kv_all_layer_mla with one argument changed."""
    src, dst = arena.layers(LAYERS, SLOTS, 16), arena.layers(LAYERS, SLOTS, 16, kind="host")
    defaults = {
        "src_layers": table(src),
        "dst_layers": table(dst),
        "src_indices": torch.arange(4),
        "dst_indices": torch.arange(4),
        "item_size": 16,
        "num_layers": LAYERS,
    }
    before = torch.stack(dst)

    def call(**changed):
        try:
            cuda["transfer_kv_all_layer_mla"](**{**defaults, **changed})
        finally:
            assert torch.equal(torch.stack(dst), before)

    call.src, call.dst = src, dst
    return call


def test_layers_must_match_the_source_table(every):
    with pytest.raises(BadCall, match="src_layers has 3 pointers for num_layers=2"):
        every(num_layers=2)


def test_destination_table_too_short(every, table):
    with pytest.raises(BadCall, match="dst_layers has 2 pointers for num_layers=3"):
        every(dst_layers=table(every.dst[:2]))


def test_table_must_be_uint64(every, table):
    with pytest.raises(BadCall, match=r"dst_layers is torch\.int64; expected torch\.uint64"):
        every(dst_layers=table(every.dst).view(torch.int64))


def test_table_known_to_be_on_the_host_is_refused(arena, every, table):
    pointers = table(every.dst)
    arena.memory.register(pointers, label="pointer table", kind="host")
    with pytest.raises(WrongDevice, match="dst_layers lies on the host"):
        every(dst_layers=pointers)


def test_pointer_into_nowhere(every, table):
    wild = table(every.dst)
    wild.view(torch.int64)[2] = 8
    with pytest.raises(OutOfRegion, match="destination layer 2: address 0x8 lies in no registered region"):
        every(dst_layers=wild)


def test_misaligned_pointer(every, table):
    shifted = table(every.dst)
    shifted.view(torch.int64)[1] += 4
    with pytest.raises(Misaligned, match="destination layer 1: the address"):
        every(dst_layers=shifted)


def test_table_that_names_one_layer_twice(every, table):
    with pytest.raises(BadCall, match="destination layer 1, slot 0 and destination layer 2, slot 0"):
        every(dst_layers=table([every.dst[0], every.dst[1], every.dst[1]]))


def test_index_that_lands_in_the_next_layer_is_refused(arena, every, table):
    buffer = torch.zeros(LAYERS, SLOTS, 16, dtype=torch.uint8)
    for layer in range(LAYERS):
        arena.memory.register(buffer[layer], label=f"device latent layer {layer}", kind="device")
    with pytest.raises(OutOfRegion, match=r"source layer 0, slot 50: .* outside region 'device latent layer 0'"):
        every(src_layers=table(list(buffer)), src_indices=torch.tensor([0, 1, 2, SLOTS]))


def test_page_first_row_must_fit_its_layout(arena, cuda, table, indices):
    src, dst = arena.layers(LAYERS, SLOTS, 16), arena.buffer(SLOTS, LAYERS, 16, kind="host")
    with pytest.raises(BadCall, match=r"layers 0\.\.3 of 16 bytes, layout_dim 32; expected layers 0\.\.2"):
        cuda["transfer_kv_all_layer_mla_lf_pf"](table(src), dst, *indices, 16, 32, LAYERS)


@pytest.mark.parametrize("layer", [-1, LAYERS])
def test_page_first_layer_must_exist(arena, cuda, indices, layer):
    src, dst = arena.buffer(SLOTS, LAYERS, 16, kind="host"), arena.buffer(SLOTS, 16)
    with pytest.raises(BadCall, match="the kernel would reach into the next token's rows"):
        cuda["transfer_kv_per_layer_mla_pf_lf"](src, dst, *indices, layer, 16, 16 * LAYERS)


def test_layout_dim_of_whole_words(arena, cuda, indices):
    src, dst = arena.buffer(SLOTS, LAYERS, 16, kind="host"), arena.buffer(SLOTS, 16)
    with pytest.raises(Misaligned, match="layout_dim is 52"):
        cuda["transfer_kv_per_layer_mla_pf_lf"](src, dst, *indices, 0, 16, 52)


@pytest.mark.parametrize(("heads", "message"), [(3, "expected heads of whole 64-bit words"), (0, "positive")])
def test_heads_must_divide_a_row_into_words(arena, cuda, indices, heads, message):
    k, v = (arena.buffer(PAGES, 1, PAGE, LAYERS, 16, kind="host") for _ in range(2))
    to = [arena.buffer(SLOTS, 16) for _ in range(2)]
    with pytest.raises(BadCall, match=message):
        cuda["transfer_kv_per_layer_ph_lf"](k, to[0], v, to[1], *indices, 0, 16, 16 * LAYERS, PAGE, heads)


def test_v_out_of_bounds_leaves_k_unwritten(arena, cuda, indices):
    k_src, v_src, k_dst, v_dst = (arena.buffer(slots, 8) for slots in (SLOTS, 1, SLOTS, SLOTS))
    before = k_dst.clone()
    with pytest.raises(OutOfRegion, match="source v, slot"):
        cuda["transfer_kv_per_layer"](k_src, k_dst, v_src, v_dst, *indices, 8)
    assert torch.equal(k_dst, before)
