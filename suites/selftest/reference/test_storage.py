import pytest
import torch

from reference.memory import allocate

INDEXER = {"index_head_dim": 16, "indexer_layers": (0, 2), "index_scale": True}


@pytest.fixture
def host(geometry, pools, layout):
    return pools(geometry(drafts=1, **INDEXER), layout)[2]


def page_rows(host, page):
    """The rows of a page by component and layer, through the address function."""
    parts = [(c.name, layer) for c in host.host_layout.components for layer in c.layers]
    return {at: host.host_layout.rows(host.buffers[at[0]], *at)[page].clone() for at in parts}


def test_a_page_holds_every_byte_of_its_rows(host):
    found = host.get_data_page(8).tolist()
    rows = torch.cat([rows.reshape(-1) for rows in page_rows(host, 2).values()])
    assert sorted(found) == sorted(rows.tolist())


def test_a_page_is_what_its_pieces_say(host):
    pieces = host.get_page_buffer_meta(torch.arange(8, 12))
    bytes_ = [host.buffers[p.component][p.offset : p.offset + p.nbytes] for p in pieces]
    assert host.get_data_page(8).equal(torch.cat(bytes_))


def test_export_and_import_move_a_page_between_pools(host, geometry, pools, layout):
    other = pools(geometry(drafts=1, **INDEXER), layout)[2]
    other.set_from_flat_data_page(32, host.get_data_page(8))
    moved, rows = page_rows(other, 8), page_rows(host, 2)
    assert all(moved[at].equal(rows[at]) for at in rows)


def test_import_writes_its_page_and_no_other(host):
    before = {name: buffer.clone() for name, buffer in host.buffers.items()}
    page = host.get_data_page(8)
    host.set_from_flat_data_page(8, ~page)
    host.set_from_flat_data_page(8, page)
    assert all(host.buffers[name].equal(buffer) for name, buffer in before.items())


def test_an_exported_page_is_a_copy(host):
    page = host.get_data_page(8)
    before = page.clone()
    host.set_from_flat_data_page(8, ~page)
    assert page.equal(before)


def test_the_dummy_page_is_zero_and_of_a_page_s_size(host):
    dummy = host.get_dummy_flat_data_page()
    assert dummy.numel() == host.get_data_page(0).numel() == 4 * host.get_size_per_token()
    assert dummy.count_nonzero() == 0


def test_the_pieces_of_all_pages_are_the_buffers(host):
    pieces = sorted(host.get_page_buffer_meta(torch.arange(36)))
    for name, buffer in host.buffers.items():
        ends = [0]
        for _, offset, nbytes in (p for p in pieces if p.component == name):
            assert offset == ends[-1]
            ends.append(offset + nbytes)
        assert ends[-1] == buffer.numel()


def test_page_first_layouts_have_one_piece_a_component(host, layout):
    pieces = [p.component for p in host.get_page_buffer_meta(torch.arange(4))]
    split = ["k", "v", "index_k", "scale"]
    expected = {"layer_first": ["latent"] * 4, "page_first_kv_split": split}
    assert pieces == expected.get(layout, ["latent"])


def test_regions_cover_every_buffer(host):
    for name, buffer in host.buffers.items():
        regions = [r for r in host.get_contiguous_buf_infos() if r.component == name]
        assert sum(r.nbytes for r in regions) == buffer.numel()
        assert all(r.nbytes == 9 * r.item_bytes and r.offset == i * r.nbytes for i, r in enumerate(regions))


def test_regions_are_layers_in_layer_first(geometry, pools):
    host = pools(geometry(), "layer_first")[2]
    assert host.get_contiguous_buf_infos() == [("latent", i * 36 * 64, 36 * 64, 4 * 64) for i in range(3)]


@pytest.mark.parametrize(
    ("layout", "row_elements", "aligned"),
    [("page_first", 512, True), ("page_first", 32, False), ("layer_first", 512, False), ("page_unified", 512, True)],
)
def test_pages_are_aligned_when_each_is_one_piece_of_whole_memory_pages(geometry, pools, layout, row_elements, aligned):
    host = pools(geometry(layers=2, kv_lora_rank=row_elements - 8), layout)[2]
    assert host.is_stride_page_aligned(4096) is aligned


def test_a_base_that_is_not_aligned_is_noticed(geometry, pools):
    host = pools(geometry(layers=2, kv_lora_rank=504), "page_first")[2]
    host.buffers["latent"] = allocate(host.buffers["latent"].numel() + 8)[8:]
    assert not host.is_stride_page_aligned(4096)


def test_dcp_pages_start_at_logical_pages(geometry, pools):
    host = pools(geometry(dcp_size=2, dcp_rank=1), "page_first")[2]
    start = 2 * 4 * 3 * 64
    assert host.get_data_page(16).equal(host.buffers["latent"][start : start + 4 * 3 * 64])
    with pytest.raises(ValueError, match="index=4 must be a multiple of 8"):
        host.get_data_page(4)


@pytest.mark.parametrize(("index", "error"), [(2, ValueError), (36, IndexError), (-4, IndexError)])
def test_where_no_page_starts_there_is_none(host, index, error):
    with pytest.raises(error, match=f"index={index}"):
        host.get_data_page(index)


@pytest.mark.parametrize("page", [torch.zeros(3, dtype=torch.uint8), torch.zeros(1024)])
def test_another_page_is_refused_and_nothing_is_written(host, page):
    before = {name: buffer.clone() for name, buffer in host.buffers.items()}
    with pytest.raises(ValueError, match="data_page"):
        host.set_from_flat_data_page(0, page)
    assert all(host.buffers[name].equal(buffer) for name, buffer in before.items())


@pytest.mark.parametrize(
    ("indices", "error"),
    [(torch.arange(3), ValueError), (torch.arange(1, 5), ValueError), (torch.arange(36, 40), IndexError)],
)
def test_meta_takes_whole_pages_inside_the_pool(host, indices, error):
    with pytest.raises(error, match="indices"):
        host.get_page_buffer_meta(indices)


def test_alignment_must_be_positive(host):
    with pytest.raises(ValueError, match="alignment=0 must be at least 1"):
        host.is_stride_page_aligned(0)
