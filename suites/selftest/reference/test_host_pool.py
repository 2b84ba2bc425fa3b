"""Backup and load against the device planes and the address function, which know nothing of each other."""

import pytest
import torch

from reference.device_pool import MLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost

INDEXER = {"index_head_dim": 16, "indexer_layers": (0, 2), "index_scale": True}


def device_rows(target, drafts, component, layer):
    """uint8 (slots, row bytes) of a host layer, on the device side."""
    of = target.geometry.layers
    return target.plane(component, layer) if layer < of else drafts[layer - of].plane(component, 0)


def host_rows(host, component, layer):
    return host.host_layout.rows(host.buffers[component], component, layer).flatten(0, 1)


def planes(host):
    return [(c.name, layer) for c in host.host_layout.components for layer in c.layers]


@pytest.fixture(params=[True, False], ids=["jit", "aot"])
def trio(request, geometry, pools, movable):
    return pools(geometry(drafts=2, **INDEXER), movable, jit=request.param)


def test_backup_writes_the_named_rows_and_no_other(trio, io_backend, slots):
    target, drafts, host = trio
    to, source = slots(8, 0, 3), slots(4, 1, 2)
    expected = {plane: host_rows(host, *plane).clone() for plane in planes(host)}
    for plane, rows in expected.items():
        rows[to] = device_rows(target, drafts, *plane)[source]
    host.backup_from_device_all_layer(to, source, io_backend)
    assert all(host_rows(host, *plane).equal(rows) for plane, rows in expected.items())


def test_backup_does_not_write_the_device(trio, io_backend, slots):
    target, drafts, host = trio
    before = {plane: device_rows(target, drafts, *plane).clone() for plane in planes(host)}
    host.backup_from_device_all_layer(slots(8, 0), slots(4, 1), io_backend)
    assert all(device_rows(target, drafts, *plane).equal(rows) for plane, rows in before.items())


@pytest.mark.parametrize("layer", range(5))
def test_load_writes_one_layer_and_no_other(trio, io_backend, slots, layer):
    target, drafts, host = trio
    source, to = slots(8, 0, 3), slots(4, 1, 2)
    expected = {plane: device_rows(target, drafts, *plane).clone() for plane in planes(host)}
    for plane, rows in expected.items():
        if plane[1] == layer:
            rows[to] = host_rows(host, *plane)[source]
    host.load_to_device_per_layer(source, to, layer, io_backend, is_draft=layer >= 3)
    assert all(device_rows(target, drafts, *plane).equal(rows) for plane, rows in expected.items())


def test_load_does_not_write_the_host(trio, io_backend, slots):
    host = trio[2]
    before = {name: buffer.clone() for name, buffer in host.buffers.items()}
    host.load_to_device_per_layer(slots(8, 0), slots(4, 1), 1, io_backend)
    assert all(host.buffers[name].equal(buffer) for name, buffer in before.items())


def test_nothing_named_is_nothing_moved(trio, io_backend):
    host, nothing = trio[2], torch.zeros(0, dtype=torch.int64)
    before = {name: buffer.clone() for name, buffer in host.buffers.items()}
    host.backup_from_device_all_layer(nothing, nothing, io_backend)
    host.load_to_device_per_layer(nothing, nothing, 0, io_backend)
    assert all(host.buffers[name].equal(buffer) for name, buffer in before.items())


@pytest.mark.parametrize("layout", ["layer_first", "page_first"])
def test_token_granular_kernels_take_scattered_tokens(geometry, pools, layout):
    target, _, host = pools(geometry(), layout, jit=False)
    to, source = torch.tensor([35, 0, 7]), torch.tensor([5, 19, 6])
    host.backup_from_device_all_layer(to, source, "kernel")
    assert host_rows(host, "latent", 2)[to].equal(target.plane("latent", 2)[source])


def test_packed_rows_of_656_bytes_move(geometry, pools, movable, io_backend, slots):
    target, drafts, host = pools(geometry(dtype="fp8_e4m3", packed_row_bytes=656), movable)
    host.backup_from_device_all_layer(slots(8), slots(1), io_backend)
    component = host.host_layout.components[0].name
    assert host_rows(host, component, 2)[32:].equal(device_rows(target, drafts, component, 2)[4:8])


def test_a_tensor_has_the_layout_s_shape_and_the_stored_dtype(geometry, pools):
    host = pools(geometry(**INDEXER), "page_first_kv_split")[2]
    found = {name: (tuple(host.tensor(name).shape), host.tensor(name).dtype) for name in host.buffers}
    assert found["index_k"] == ((9, 2, 4, 1, 16), torch.bfloat16)
    assert found["scale"] == ((9, 2, 4, 1, 1), torch.float32)


def test_size_per_token_counts_every_component(geometry, pools):
    assert pools(geometry(drafts=1, **INDEXER), "page_first_kv_split")[2].get_size_per_token() == 4 * 64 + 2 * 36


@pytest.mark.parametrize("layout", ["layer_first", "page_first"])
def test_a_layer_shard_moves_its_own_layers_and_the_drafts(geometry, pools, layout, slots):
    g = geometry(layers=5, drafts=1, layer_shard_size=2, layer_shard_rank=1)
    target, drafts, host = pools(g, layout)
    assert host.host_layout.components[0].layers == (3, 4, 5)
    host.backup_from_device_all_layer(slots(8), slots(1), "kernel")
    for layer in (3, 4, 5):
        assert host_rows(host, "latent", layer)[32:].equal(device_rows(target, drafts, "latent", layer)[4:8])
    before = [tensor.clone() for tensor in target.kv_buffer]
    host.load_to_device_per_layer(slots(8), slots(2), 0, "kernel")
    assert all(
        tensor.view(torch.uint8).equal(b.view(torch.uint8)) for tensor, b in zip(target.kv_buffer, before, strict=True)
    )


def test_dcp_ranks_share_a_logical_page(geometry, pools, slots):
    target, _, host = pools(geometry(dcp_size=2, dcp_rank=1), "layer_first")
    assert host.available_size() == 72
    host.backup_from_device_all_layer(slots(5, page_size=8), slots(2, page_size=8), "kernel")
    assert host_rows(host, "latent", 0)[20:24].equal(target.plane("latent", 0)[8:12])


def test_the_pool_is_what_the_budget_allows(geometry):
    target = MLATokenToKVPool(geometry())
    needed = 36 * 3 * 64
    assert MLATokenToKVPoolHost(target, "layer_first", budget_bytes=needed).size == 36
    with pytest.raises(ValueError, match=f"requested_bytes={needed}"):
        MLATokenToKVPoolHost(target, "layer_first", budget_bytes=needed - 1)


def test_slots_are_the_allocator_s(geometry, pools):
    host = pools(geometry(), "page_first")[2]
    taken = host.alloc(32)
    assert (taken.tolist()[:2], host.alloc(8), host.available_size()) == ([0, 1], None, 4)
    assert host.free(taken[:4]) == 4
    host.clear()
    assert host.available_size() == 36
