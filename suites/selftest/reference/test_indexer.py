import pytest
import torch

from reference.indexer import DSAIndexerPoolHost, DSATokenToKVPool, bytes_per_token, indexer_geometry

LAYOUTS = {"layer_first": "kernel", "page_first": "kernel", "page_first_direct": "direct"}
SUBSET = {"index_head_dim": 128, "indexer_layers": (0, 2)}


@pytest.fixture(params=LAYOUTS)
def trio(request, geometry, filled):
    g = geometry(**SUBSET, drafts=1)
    target, draft = DSATokenToKVPool(g), DSATokenToKVPool(geometry(layers=1, index_head_dim=128))
    host = DSAIndexerPoolHost(target, request.param, draft_device_pools=[draft])
    for tensor in (*target.indexer.kv_buffer, *draft.indexer.kv_buffer, host.pages.buffers["latent"]):
        filled(tensor)
    return target, draft, host


def host_pages(host, position):
    return host.pages.host_layout.rows(host.pages.buffers["latent"], "latent", position).flatten(1)


def test_a_row_is_a_page_of_keys_and_scales(geometry):
    pool = DSATokenToKVPool(geometry(**SUBSET))
    assert [tuple(rows.shape) for rows in pool.index_k_with_scale_buffer] == [(5, 4 * 132)] * 2


def test_the_host_has_an_indexer_page_more_than_pages(geometry):
    assert indexer_geometry(geometry(**SUBSET)).host_slots == 10


def test_backup_moves_pages_of_every_indexer_layer_and_draft(trio, slots):
    target, draft, host = trio
    expected = [host_pages(host, at).clone() for at in range(3)]
    for rows, source in zip(
        expected, [*target.index_k_with_scale_buffer, *draft.index_k_with_scale_buffer], strict=True
    ):
        rows[[8, 0]] = source[[4, 1]]
    host.backup_from_device_all_layer(slots(8, 0), slots(4, 1), LAYOUTS[host.layout])
    assert all(host_pages(host, at).equal(rows) for at, rows in enumerate(expected))


def test_load_moves_one_layer(trio, slots):
    target, _, host = trio
    expected = [rows.clone() for rows in target.index_k_with_scale_buffer]
    expected[1][4] = host_pages(host, 1)[8]
    host.load_to_device_per_layer(slots(8), slots(4), 2, LAYOUTS[host.layout])
    assert all(rows.equal(e) for rows, e in zip(target.index_k_with_scale_buffer, expected, strict=True))


def test_a_draft_follows_the_target(trio, slots):
    _, draft, host = trio
    host.load_to_device_per_layer(slots(8), slots(4), 3, LAYOUTS[host.layout], is_draft=True)
    assert draft.index_k_with_scale_buffer[0][4].equal(host_pages(host, 2)[8])


def test_a_layer_without_an_indexer_has_nothing_to_load(trio, slots):
    target, _, host = trio
    before = [rows.clone() for rows in target.index_k_with_scale_buffer]
    host.load_to_device_per_layer(slots(8), slots(4), 1, LAYOUTS[host.layout])
    assert all(rows.equal(b) for rows, b in zip(target.index_k_with_scale_buffer, before, strict=True))


def test_a_storage_page_is_the_page_of_every_layer(trio):
    host = trio[2]
    page = host.get_data_page(32)
    assert page.equal(torch.cat([host_pages(host, at)[8] for at in range(3)]))
    host.set_from_flat_data_page(0, page)
    assert host_pages(host, 2)[0].equal(host_pages(host, 2)[8])
    assert host.get_dummy_flat_data_page().numel() == page.numel() == 3 * 4 * 132


@pytest.mark.parametrize(
    ("host_slots", "device_slots", "error", "text"),
    [
        ([0, 1], [4, 5], ValueError, "must be a multiple of 4"),
        ([36, 37, 38, 39], [4, 5, 6, 7], IndexError, r"host_indices.0.=36 lies outside 0..35"),
        ([1, 2, 3, 4], [4, 5, 6, 7], ValueError, r"host_indices.0.=1 must start a page"),
    ],
)
def test_bad_slots_are_refused_and_nothing_is_written(trio, host_slots, device_slots, error, text):
    host = trio[2]
    before = host.pages.buffers["latent"].clone()
    with pytest.raises(error, match=text):
        host.backup_from_device_all_layer(torch.tensor(host_slots), torch.tensor(device_slots), LAYOUTS[host.layout])
    assert host.pages.buffers["latent"].equal(before)


@pytest.mark.parametrize("io_backend", ["kernel_ascend", "warp"])
def test_other_backends_are_refused(trio, slots, io_backend):
    with pytest.raises(ValueError, match="Unsupported IO backend"):
        trio[2].backup_from_device_all_layer(slots(1), slots(1), io_backend)


def test_a_layout_the_pool_does_not_have_is_refused(geometry):
    with pytest.raises(ValueError, match="layout='page_first_kv_split' is no layout of the indexer pool"):
        DSAIndexerPoolHost(DSATokenToKVPool(geometry(**SUBSET)), "page_first_kv_split")


def test_a_model_without_an_indexer_has_no_such_pool(geometry):
    with pytest.raises(ValueError, match="index_head_dim=None"):
        DSATokenToKVPool(geometry())


def test_part_of_a_block_is_refused():
    with pytest.raises(ValueError, match="index_head_dim=100 must be a multiple of 128"):
        bytes_per_token(100)
