import math

import numpy as np
import pytest
import torch

from reference import host_layout

# (shape of the latent or k buffer, where the row of (layer, slot) is in it), spelled out by hand from FACTS.md section
# 2.1 for 3 layers and a draft, 9 pages of 4 slots, rows of 32 (k: 24) elements.
EXPECTED = {
    "layer_first": ((4, 36, 1, 32), lambda a, layer, slot: a[layer, slot]),
    "page_first": ((36, 4, 1, 32), lambda a, layer, slot: a[slot, layer]),
    "page_first_direct": ((9, 4, 4, 1, 32), lambda a, layer, slot: a[slot // 4, layer, slot % 4]),
    "page_first_kv_split": ((9, 4, 4, 1, 24), lambda a, layer, slot: a[slot // 4, layer, slot % 4]),
    "page_unified": ((9, 4, 4, 32), lambda a, layer, slot: a[slot // 4, layer, slot % 4]),
}


@pytest.fixture
def laid(geometry, layout):
    return host_layout(layout, geometry(drafts=1, index_head_dim=16, indexer_layers=(0, 2), index_scale=True))


def rows(laid):
    """Every (component, layer, slot)."""
    return [(c.name, layer, slot) for c in laid.components for layer in c.layers for slot in range(36)]


def test_shape(laid):
    assert laid.shape(laid.components[0].name) == EXPECTED[laid.name][0]


def test_address(laid):
    part, (shape, at) = laid.components[0], EXPECTED[laid.name]
    addresses = np.arange(math.prod(shape)).reshape(shape) * 2
    for layer in part.layers:
        for slot in range(36):
            assert laid.offset(part.name, layer, slot) == at(addresses, layer, slot).reshape(-1)[0]


def test_the_address_function_is_a_bijection_onto_each_buffer(laid):
    for part in laid.components:
        starts = sorted(laid.offset(part.name, layer, slot) for layer in part.layers for slot in range(36))
        assert starts == list(range(0, laid.nbytes(part.name), part.row_bytes))


def test_the_shape_is_the_buffer(laid):
    for part in laid.components:
        assert math.prod(laid.shape(part.name)) * part.element_bytes == laid.nbytes(part.name)


def test_strides_are_those_of_a_contiguous_tensor(laid):
    for part in laid.components:
        strides = torch.empty(laid.shape(part.name), device="meta").stride()
        assert laid.strides(part.name) == tuple(part.element_bytes * stride for stride in strides)


def test_a_plane_is_the_address_function_in_affine_form(laid):
    for name, layer, slot in rows(laid):
        p = laid.plane(name, layer)
        assert p.offset + slot // 4 * p.page_stride + slot % 4 * p.slot_stride == laid.offset(name, layer, slot)


def test_rows_view_the_bytes_at_the_address(laid, filled):
    buffers = {c.name: filled(torch.zeros(laid.nbytes(c.name), dtype=torch.uint8)) for c in laid.components}
    for name, layer, slot in rows(laid):
        start = laid.offset(name, layer, slot)
        found = laid.rows(buffers[name], name, layer)[slot // 4, slot % 4]
        assert found.equal(buffers[name][start : start + laid.item_size(name)])


def test_rows_are_no_copy(laid):
    name = laid.components[0].name
    buffer = torch.zeros(laid.nbytes(name), dtype=torch.uint8)
    laid.rows(buffer, name, 1).fill_(7)
    assert int(buffer.count_nonzero()) == 36 * laid.item_size(name)


def test_layout_dim_is_a_token_over_all_layers(laid):
    name = laid.components[0].name
    assert laid.layout_dim(name) == 4 * laid.item_size(name)
    assert laid.page_bytes(name) == 4 * laid.layout_dim(name)


def test_pages_of_one_slot(geometry, layout):
    one = host_layout(layout, geometry(page_size=1, device_tokens=16))
    part = one.components[0]
    assert one.plane(part.name, 2).page_stride == one.offset(part.name, 2, 1) - one.offset(part.name, 2, 0)


def test_an_unknown_layout_is_named(geometry):
    with pytest.raises(ValueError, match="Unsupported layout: layout='page_head'"):
        host_layout("page_head", geometry())


def test_page_unified_needs_rows_of_whole_vectors(geometry):
    with pytest.raises(ValueError, match="latent_row_bytes=60 must be a multiple of 16"):
        host_layout("page_unified", geometry(qk_rope_head_dim=6))


def test_an_unknown_component_is_named(laid):
    with pytest.raises(ValueError, match="component='conv' is not in layout"):
        laid.offset("conv", 0, 0)


def test_a_layer_without_rows_is_named(geometry):
    split = host_layout("page_first_kv_split", geometry(index_head_dim=16, indexer_layers=(0, 2)))
    with pytest.raises(ValueError, match="layer=1 has no index_k rows"):
        split.offset("index_k", 1, 0)


@pytest.mark.parametrize("slot", [-1, 36])
def test_a_slot_outside_is_named(laid, slot):
    with pytest.raises(IndexError, match=f"slot={slot} lies outside 0..35"):
        laid.offset(laid.components[0].name, 0, slot)


@pytest.mark.parametrize("buffer", [torch.zeros(3), torch.zeros(3, dtype=torch.uint8)])
def test_rows_of_another_buffer_are_refused(laid, buffer):
    with pytest.raises(ValueError, match="buffer"):
        laid.rows(buffer, laid.components[0].name, 0)
