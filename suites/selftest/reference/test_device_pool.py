import pytest
import torch

from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool


def test_the_latent_pool_is_a_list_of_layers_with_a_padding_page(geometry):
    pool = MLATokenToKVPool(geometry())
    assert [tuple(layer.shape) for layer in pool.kv_buffer] == [(20, 1, 32)] * 3


def test_the_pointer_table_points_at_the_layers(geometry):
    pool = MLATokenToKVPool(geometry())
    assert pool.data_ptrs.dtype == torch.uint64
    assert pool.data_ptrs.tolist() == [layer.data_ptr() for layer in pool.kv_buffer]


def test_fp8_rows_are_stored_as_bytes(geometry):
    pool = MLATokenToKVPool(geometry(dtype="fp8_e4m3", packed_row_bytes=656))
    assert (pool.kv_buffer[0].dtype, pool.kv_cache_dim) == (torch.uint8, 656)


def test_the_split_pool_has_no_pointer_table(geometry):
    assert not [name for name in dir(NPUMLATokenToKVPool(geometry())) if "data_ptr" in name]


def test_the_split_pool_is_paged_and_layer_first(geometry):
    pool = NPUMLATokenToKVPool(geometry(index_head_dim=16, indexer_layers=(0, 2), index_scale=True))
    shapes = {name: tuple(tensor.shape) for name, tensor in pool.tensors.items()}
    assert shapes == {"k": (3, 5, 4, 1, 24), "v": (3, 5, 4, 1, 8), "index_k": (2, 5, 4, 1, 16), "scale": (2, 5, 4, 1)}
    assert pool.index_k_scale_buffer.dtype == torch.float32


def test_a_packed_split_pool_has_no_v(geometry):
    assert NPUMLATokenToKVPool(geometry(dtype="fp8_e4m3", packed_row_bytes=656)).v_buffer is None


@pytest.mark.parametrize("kind", [MLATokenToKVPool, NPUMLATokenToKVPool])
def test_a_plane_is_a_view_of_its_rows(geometry, kind):
    pool = kind(geometry())
    component = pool.planes[0][0]
    pool.plane(component, 2)[7] = 9
    tensor = pool.kv_buffer[2] if kind is MLATokenToKVPool else pool.k_buffer[2]
    assert (tensor.view(20, -1)[7].view(torch.uint8) == 9).all()
    assert sum(int(pool.plane(component, layer).count_nonzero()) for layer in range(3)) == tensor[0].nbytes // (
        1 if kind is MLATokenToKVPool else 4
    )


def test_the_index_k_plane_of_a_subset_is_found_by_layer(geometry):
    pool = NPUMLATokenToKVPool(geometry(index_head_dim=16, indexer_layers=(0, 2)))
    pool.plane("index_k", 2).fill_(1)
    assert pool.index_k_buffer[0].count_nonzero() == 0
    assert pool.index_k_buffer[1].count_nonzero() == 20 * 16


@pytest.mark.parametrize("kind", [MLATokenToKVPool, NPUMLATokenToKVPool])
def test_a_plane_that_is_not_stored_is_named(geometry, kind):
    with pytest.raises(ValueError, match="component='index_k', layer=1 is not in this device pool"):
        kind(geometry()).plane("index_k", 1)


def test_a_shard_stores_its_own_layers(geometry):
    pool = MLATokenToKVPool(geometry(layer_shard_size=2, layer_shard_rank=1))
    assert (pool.layers, len(pool.kv_buffer)) == ((2,), 1)
