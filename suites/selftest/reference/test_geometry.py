import pytest
import torch


def test_the_host_pool_has_one_page_more_than_the_ratio_gives(geometry):
    g = geometry(page_size=16, device_tokens=256)
    assert (g.host_pages, g.host_slots) == (33, 528)  # as measured, FACTS.md section 1.3


def test_a_capacity_is_exact(geometry):
    assert geometry(host_token_capacity=8).host_slots == 8


def test_gigabytes_are_decimal_and_count_every_component(geometry):
    g = geometry(index_head_dim=16)
    assert g.sized_by_gigabytes(1e-5, split=True).host_slots == (10_000 // 288 // 4 + 1) * 4


def test_the_device_pool_has_a_padding_page(geometry):
    assert (geometry().device_slots, geometry().device_pages) == (20, 5)


@pytest.mark.parametrize(("dtype", "store", "row"), [("bf16", torch.bfloat16, 64), ("fp8_e4m3", torch.uint8, 32)])
def test_fp8_is_stored_as_bytes(geometry, dtype, store, row):
    g = geometry(dtype=dtype)
    assert (g.store_dtype, g.latent_row_bytes) == (store, row)


def test_a_packed_row_overrides_the_latent_row(geometry):
    g = geometry(dtype="fp8_e4m3", packed_row_bytes=656)
    assert [(c.name, c.row_bytes) for c in g.components(split=True)] == [("k", 656)]


def test_drafts_follow_the_target_and_carry_no_indexer(geometry):
    g = geometry(drafts=2, index_head_dim=16, indexer_layers=(0, 2), index_scale=True)
    layers = {c.name: c.layers for c in g.components(split=True)}
    assert layers == {"k": (0, 1, 2, 3, 4), "v": (0, 1, 2, 3, 4), "index_k": (0, 2), "scale": (0, 2)}


def test_indexer_rows_count_in_a_token(geometry):
    g = geometry(index_head_dim=16, indexer_layers=(1,), index_scale=True)
    assert g.size_per_token(split=True) == 3 * 64 + 32 + 4


def test_layer_shards_partition_the_layers(geometry):
    shards = [geometry(layers=7, layer_shard_size=3, layer_shard_rank=rank).owned_layers for rank in range(3)]
    assert [list(s) for s in shards] == [[0, 1, 2], [3, 4], [5, 6]]


def test_a_stage_ends_where_its_layers_end(geometry):
    assert geometry(start_layer=30).end_layer == 32


def test_a_logical_page_spans_the_dcp_ranks(geometry):
    assert geometry(dcp_size=2, dcp_rank=1).logical_page_size == 8


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"layers": 0}, "layers=0 must be at least 1"),
        ({"drafts": -1}, "drafts=-1 must be at least 0"),
        ({"dtype": "int4"}, "dtype='int4' is not a pool dtype"),
        ({"device_tokens": 17}, "device_tokens=17 must be a multiple of 4"),
        ({"host_token_capacity": 6}, "host_token_capacity=6 must be a multiple of 4"),
        ({"host_ratio": 0.0}, "host_ratio=0.0 must be greater than 0"),
        ({"indexer_layers": (0,)}, "indexer_layers=.0,. must be None"),
        ({"index_scale": True}, "index_scale=True must be False"),
        ({"index_head_dim": 16, "indexer_layers": (2, 0)}, "must be ascending"),
        ({"packed_row_bytes": 7}, "packed_row_bytes=7 must be a multiple of 2"),
    ],
)
def test_an_impossible_field_is_named(geometry, fields, text):
    with pytest.raises(ValueError, match=text):
        geometry(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dcp_size": 2, "dcp_rank": 2}, "dcp_rank=2 lies outside 0..1"),
        ({"layer_shard_rank": 1}, "layer_shard_rank=1 lies outside 0..0"),
        ({"index_head_dim": 16, "indexer_layers": (3,)}, "indexer_layers=3 lies outside 0..2"),
    ],
)
def test_an_index_outside_is_named(geometry, fields, text):
    with pytest.raises(IndexError, match=text):
        geometry(**fields)


def test_gigabytes_must_be_positive(geometry):
    with pytest.raises(ValueError, match="gigabytes=0"):
        geometry().sized_by_gigabytes(0, split=False)
