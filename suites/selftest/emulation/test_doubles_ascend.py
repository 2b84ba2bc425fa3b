"""The Ascend exchange against loops over pages, its four signatures, and every precondition violated once."""

import inspect

import pytest
import torch

from harness.emulation.doubles import ascend_kvcacheio_module
from harness.errors import BadCall, EmulationGap, Misaligned, OutOfRegion, UsageError, WrongDevice

LAYERS, PAGES, PAGE = 3, 9, 4
HOST_PAGES, HOST_LAYERS = 11, 5
WIDTHS = {"k": 7, "v": 3, "index_k": 5}


@pytest.fixture(params=["K0", "K1", "K2", "K3"])
def any_build(arena, request):
    return ascend_kvcacheio_module(arena.memory, arena.calls, request.param)


@pytest.fixture
def vendor(arena):
    return ascend_kvcacheio_module(arena.memory, arena.calls, "K1")


@pytest.fixture
def operands(arena):
    """Device (layer, page, token, head, dim) and host (page, layer, …) buffers of K, V and the indexer's K."""
    found = {}
    for name, width in WIDTHS.items():
        found[f"device_{name}"] = arena.buffer(LAYERS, PAGES, PAGE, 1, width, dtype=torch.int16)
        found[f"host_{name}"] = arena.buffer(HOST_PAGES, LAYERS, PAGE, 1, width, dtype=torch.int16, kind="host")
    return found


@pytest.fixture
def indices(arena):
    return {"device_indices": arena.pages(6, PAGES, PAGE), "host_indices": arena.pages(6, HOST_PAGES, PAGE)}


def expected_after(operands, indices, direction, names=WIDTHS):
    result = {name: tensor.clone() for name, tensor in operands.items()}
    for device_slot, host_slot in zip(*(side.tolist() for side in indices.values()), strict=True):
        for name in names:
            device = result[f"device_{name}"][:, device_slot // PAGE, device_slot % PAGE]
            host = result[f"host_{name}"][host_slot // PAGE, :, host_slot % PAGE]
            host.copy_(device) if direction == "D2H" else device.copy_(host)
    return result


def same(operands, expected):
    return all(torch.equal(tensor, expected[name]) for name, tensor in operands.items())


@pytest.mark.parametrize("direction", ["D2H", "H2D"])
def test_exchange(arena, any_build, operands, indices, direction):
    expected = expected_after(operands, indices, direction)
    way = any_build.TransferDirection[direction]
    any_build.transfer_kv_dim_exchange(**indices, **operands, page_size=PAGE, direction=way)
    assert same(operands, expected)
    assert arena.calls == ["ascend.transfer_kv_dim_exchange"]


def test_exchange_with_a_slice_of_the_hosts_layers(arena, vendor, operands, indices):
    whole = {
        name: arena.buffer(HOST_PAGES, HOST_LAYERS, PAGE, 1, width, dtype=torch.int16) for name, width in WIDTHS.items()
    }
    arena.memory.clear()
    operands.update({f"host_{name}": tensor[:, 1 : 1 + LAYERS] for name, tensor in whole.items()})
    expected, untouched = expected_after(operands, indices, "D2H"), whole["k"][:, 4].clone()
    vendor.transfer_kv_dim_exchange(**indices, **operands, page_size=PAGE, direction=vendor.TransferDirection.D2H)
    assert same(operands, expected)
    assert torch.equal(whole["k"][:, 4], untouched)


def test_int32_indices(vendor, operands, indices):
    expected = expected_after(operands, indices, "H2D")
    narrow = {name: tensor.int() for name, tensor in indices.items()}
    vendor.transfer_kv_dim_exchange(**narrow, **operands, page_size=PAGE)
    assert same(operands, expected)


@pytest.mark.parametrize("missing", ["device_index_k", "host_index_k"])
def test_indexer_is_skipped_unless_both_sides_have_it(vendor, operands, indices, missing):
    expected = expected_after(operands, indices, "H2D", names=("k", "v"))
    vendor.transfer_kv_dim_exchange(**indices, **{**operands, missing: None}, page_size=PAGE)
    assert same(operands, expected)


def test_scale_of_four_axes(arena, vendor, operands, indices):
    device = arena.buffer(2, PAGES, PAGE, 1, dtype=torch.float32)
    host = arena.buffer(HOST_PAGES, 2, PAGE, 1, 1, dtype=torch.float32, kind="host")
    vendor.transfer_kv_dim_exchange(
        **indices, **operands, device_index_k_scale=device, host_index_k_scale=host, page_size=PAGE
    )
    moved = device.view(torch.int32)[:, indices["device_indices"] // PAGE, indices["device_indices"] % PAGE, 0]
    there = host.view(torch.int32)[indices["host_indices"] // PAGE, :, indices["host_indices"] % PAGE, 0, 0]
    assert torch.equal(moved, there.transpose(0, 1))


def test_empty_v_is_skipped(vendor, operands, indices):
    operands["device_v"], operands["host_v"] = torch.empty(0), torch.empty(0)
    expected = expected_after(operands, indices, "D2H", names=("k", "index_k"))
    vendor.transfer_kv_dim_exchange(**indices, **operands, page_size=PAGE, direction=vendor.TransferDirection.D2H)
    assert same(operands, expected)


def test_no_indices_is_no_copy(vendor, operands):
    before = {name: tensor.clone() for name, tensor in operands.items()}
    vendor.transfer_kv_dim_exchange(torch.arange(0), torch.arange(0), **operands, page_size=PAGE)
    assert same(operands, before)


# ---- signatures

COMMON = [
    "device_indices",
    "host_indices",
    "device_k",
    "host_k",
    "device_v",
    "host_v",
    "device_index_k",
    "host_index_k",
]
SCALE = ["device_index_k_scale", "host_index_k_scale"]
SLICES = ["layer_start", "layer_num", "index_k_layer_start", "index_k_layer_num"]
TAIL = ["page_size", "direction", "flags"]


@pytest.mark.parametrize(
    ("build", "names"),
    [
        ("K0", COMMON + TAIL),
        ("K1", COMMON + SCALE + TAIL),
        ("K2", COMMON + SCALE + TAIL + SLICES),
        ("K3", COMMON + SCALE + SLICES + TAIL),
    ],
)
def test_parameters_of_a_build(arena, build, names):
    module = ascend_kvcacheio_module(arena.memory, arena.calls, build)
    parameters = inspect.signature(module.transfer_kv_dim_exchange).parameters
    assert [*parameters] == names
    assert parameters["page_size"].default == 128
    assert parameters["direction"].default is module.TransferDirection.H2D


def test_old_build_refuses_the_scale(arena, operands, indices):
    module = ascend_kvcacheio_module(arena.memory, arena.calls, "K0")
    with pytest.raises(TypeError, match=r"dim_exchange\(\) got an unexpected keyword argument 'device_index_k_scale'"):
        module.transfer_kv_dim_exchange(**indices, **operands, device_index_k_scale=None)


def test_enums_have_the_vendors_values(vendor):
    assert [(member.name, member.value) for member in vendor.TransferDirection] == [("H2D", 1), ("D2H", 2)]
    assert vendor.TransferFlag.FAST2D.value == 2


def test_unknown_build(arena):
    with pytest.raises(UsageError, match="build 'K9' is not known; expected one of K0, K1, K2, K3"):
        ascend_kvcacheio_module(arena.memory, arena.calls, "K9")


def test_layer_slices_are_not_modelled(arena, operands, indices):
    module = ascend_kvcacheio_module(arena.memory, arena.calls, "K2")
    with pytest.raises(EmulationGap, match="layer_start=1"):
        module.transfer_kv_dim_exchange(**indices, **operands, page_size=PAGE, layer_start=1)


# ---- preconditions


@pytest.fixture
def exchange(vendor, operands, indices):
    before = {name: tensor.clone() for name, tensor in operands.items()}

    def call(**changed):
        arguments = {**indices, **operands, "page_size": PAGE, "direction": vendor.TransferDirection.D2H, **changed}
        try:
            vendor.transfer_kv_dim_exchange(**arguments)
        finally:
            assert same(operands, before)

    return call


@pytest.mark.parametrize("side", ["device_indices", "host_indices"])
def test_page_start_must_be_aligned(exchange, indices, side):
    with pytest.raises(Misaligned, match=rf"{side}, page 0 of the call, starts at slot \d+; expected a multiple of"):
        exchange(**{side: indices[side] + 1})


@pytest.mark.parametrize("side", ["device_indices", "host_indices"])
def test_unread_indices_must_follow(exchange, indices, side):
    swapped = indices[side].clone()
    swapped[[5, 6]] = swapped[[6, 5]]
    with pytest.raises(BadCall, match=f"{side}, page 1 of the call: slot"):
        exchange(**{side: swapped})


@pytest.mark.parametrize(("side", "limit"), [("device_indices", PAGES), ("host_indices", HOST_PAGES)])
def test_page_out_of_range(exchange, indices, side, limit):
    late = indices[side].clone()
    late[:PAGE] = torch.arange(limit * PAGE, (limit + 1) * PAGE)
    with pytest.raises(OutOfRegion, match=f"page {limit} of {limit}; expected pages"):
        exchange(**{side: late})


@pytest.mark.parametrize("side", ["device_indices", "host_indices"])
def test_negative_page(exchange, indices, side):
    early = indices[side].clone()
    early[:PAGE] = torch.arange(-PAGE, 0)
    with pytest.raises(OutOfRegion, match=f"{side}: index -4"):
        exchange(**{side: early})


def test_destination_page_twice(exchange, indices):
    with pytest.raises(BadCall, match="written to the same bytes"):
        exchange(host_indices=indices["host_indices"][:PAGE].repeat(6))


def test_indices_must_pair(exchange, indices):
    with pytest.raises(BadCall, match="24 source and 20 destination indices"):
        exchange(host_indices=indices["host_indices"][PAGE:])


def test_indices_must_be_whole_pages(exchange, indices):
    with pytest.raises(Misaligned, match="the number of indices is 23"):
        exchange(**{side: tensor[:-1] for side, tensor in indices.items()})


def test_index_dtype(exchange, indices):
    with pytest.raises(BadCall, match=r"host_indices is torch\.float32"):
        exchange(host_indices=indices["host_indices"].float())


def test_layer_counts_must_agree(exchange, operands):
    with pytest.raises(BadCall, match="the layer number of device_k is 2, that of host_k is 3"):
        exchange(device_k=operands["device_k"][:2].contiguous())


def test_v_layer_counts_must_agree(exchange, operands):
    with pytest.raises(BadCall, match="the layer number of device_v is 2, that of host_v is 3"):
        exchange(device_v=operands["device_v"][:2].contiguous())


def test_page_size_must_agree(exchange):
    with pytest.raises(BadCall, match="device_k has pages of 4, host_k of 4 tokens; expected page_size 2"):
        exchange(page_size=2)


def test_page_size_of_the_device_alone(arena, exchange):
    device = arena.buffer(LAYERS, PAGES, PAGE // 2, 1, 7, dtype=torch.int16)
    with pytest.raises(BadCall, match="device_k has pages of 2, host_k of 4 tokens; expected page_size 4"):
        exchange(device_k=device)


@pytest.mark.parametrize("name", ["k", "index_k"])
def test_empty_operands(exchange, name):
    with pytest.raises(BadCall, match=f"device_{name} has 0 and host_{name} 0 elements"):
        exchange(**{f"device_{name}": torch.empty(0), f"host_{name}": torch.empty(0)})


def test_number_of_axes(exchange, operands):
    with pytest.raises(BadCall, match="device_k has 4 dimensions, host_k has 5"):
        exchange(device_k=operands["device_k"][..., 0])


def test_dtypes_must_agree(exchange, operands):
    with pytest.raises(
        BadCall, match=r"device_k has rows of \(1, 7\) torch\.bfloat16, host_k of \(1, 7\) torch\.int16"
    ):
        exchange(device_k=operands["device_k"].view(torch.bfloat16))


def test_row_widths_must_agree(arena, exchange):
    with pytest.raises(BadCall, match="the kernel takes the device's width for both sides"):
        exchange(host_v=arena.buffer(HOST_PAGES, LAYERS, PAGE, 1, 4, dtype=torch.int16, kind="host"))


def test_v_of_another_item_size(arena, exchange):
    v = {
        "device_v": arena.buffer(LAYERS, PAGES, PAGE, 1, 3),
        "host_v": arena.buffer(HOST_PAGES, LAYERS, PAGE, 1, 3, kind="host"),
    }
    with pytest.raises(BadCall, match=r"V has \(heads, item bytes\) \(1, 1\), K has \(1, 2\)"):
        exchange(**v)


def test_device_must_be_contiguous(arena, exchange):
    wide = arena.buffer(LAYERS, PAGES + 1, PAGE, 1, 7, dtype=torch.int16)
    with pytest.raises(BadCall, match=r"device_k has strides \(280, 28, 7, 7, 1\)"):
        exchange(device_k=wide[:, :PAGES])


def test_host_layers_must_follow_each_other(arena, exchange):
    layer_first = arena.buffer(LAYERS, HOST_PAGES, PAGE, 1, 7, dtype=torch.int16, kind="host")
    with pytest.raises(BadCall, match="pages that are contiguous over their layers"):
        exchange(host_k=layer_first.transpose(0, 1))


def test_operands_on_the_wrong_side(arena, exchange, operands):
    host = arena.buffer(*operands["device_k"].shape, dtype=torch.int16, kind="host")
    with pytest.raises(WrongDevice, match="device_k lies on the host"):
        exchange(device_k=host)


def test_host_operand_on_the_device(arena, exchange, operands):
    device = arena.buffer(*operands["host_k"].shape, dtype=torch.int16)
    with pytest.raises(WrongDevice, match="host_k lies on the device"):
        exchange(host_k=device)


@pytest.mark.parametrize("argument", [{"direction": 2}, {"flags": 2}])
def test_bare_numbers_are_no_enums(exchange, argument):
    with pytest.raises(BadCall, match="expected TransferDirection and TransferFlag"):
        exchange(**argument)
