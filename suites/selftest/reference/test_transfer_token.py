"""Each kernel against a loop over its addresses, written by hand from FACTS.md section 4."""

import pytest
import torch

from reference import transfer

ITEM, LAYERS, TOKENS = 24, 3, 6
DIM = ITEM * LAYERS
SRC = torch.tensor([5, 0, 3])
DST = torch.tensor([2, 4, 1])


@pytest.fixture
def layer(filled):
    return lambda: filled(torch.zeros(TOKENS, 1, ITEM, dtype=torch.uint8))


@pytest.fixture
def page_first(filled):
    return filled(torch.zeros(TOKENS, LAYERS, 1, ITEM, dtype=torch.uint8))


def copied(dst, dst_at, src, src_at):
    """A copy of flat bytes dst in which rows were copied one by one: (base, stride) on either side."""
    out, src = dst.clone().view(-1), src.view(-1)
    for d, s in zip(DST.tolist(), SRC.tolist(), strict=True):
        to, source = dst_at[0] + d * dst_at[1], src_at[0] + s * src_at[1]
        out[to : to + ITEM] = src[source : source + ITEM]
    return out


def test_per_layer(layer):
    src, dst = layer(), layer()
    expected = copied(dst, (0, ITEM), src, (0, ITEM))
    transfer.per_layer(src, dst, SRC, DST, ITEM)
    assert dst.view(-1).equal(expected)


def test_all_layer(layer):
    src, dst = [layer() for _ in range(LAYERS)], [layer() for _ in range(LAYERS)]
    expected = [copied(d, (0, ITEM), s, (0, ITEM)) for d, s in zip(dst, src, strict=True)]
    transfer.all_layer(src, dst, SRC, DST, ITEM, LAYERS)
    assert all(d.view(-1).equal(e) for d, e in zip(dst, expected, strict=True))


def test_lf_pf(layer, page_first):
    src, expected = [layer() for _ in range(LAYERS)], page_first
    for number, table in enumerate(src):
        expected = copied(expected, (number * ITEM, DIM), table, (0, ITEM))
    transfer.lf_pf(src, page_first, SRC, DST, ITEM, DIM, LAYERS)
    assert page_first.view(-1).equal(expected)


@pytest.mark.parametrize("number", range(LAYERS))
def test_pf_lf(layer, page_first, number):
    dst = layer()
    expected = copied(dst, (0, ITEM), page_first, (number * ITEM, DIM))
    transfer.pf_lf(page_first, dst, SRC, DST, number, ITEM, DIM)
    assert dst.view(-1).equal(expected)


def test_one_layer_follows_the_strides(layer, page_first):
    dst = layer()
    expected = copied(dst, (0, ITEM), page_first, (2 * ITEM, DIM))
    transfer.one_layer(dst, page_first[:, 2], DST, SRC)
    assert dst.view(-1).equal(expected)


def test_direct(layer):
    src, dst = [layer(), layer()], [layer(), layer()]
    expected = [copied(d, (0, ITEM), s, (0, ITEM)) for d, s in zip(dst, src, strict=True)]
    transfer.direct(src, dst, SRC, DST, 3)
    assert all(d.view(-1).equal(e) for d, e in zip(dst, expected, strict=True))


def test_the_source_is_not_written(layer, page_first):
    before = page_first.clone()
    transfer.pf_lf(page_first, layer(), SRC, DST, 1, ITEM, DIM)
    assert page_first.equal(before)


def test_a_negative_zero_and_a_nan_payload_survive():
    src = torch.tensor([[0x7FC1, 0xFF81, 0x8000, 0x0001]], dtype=torch.uint16).view(torch.bfloat16)
    dst = torch.zeros(1, 4, dtype=torch.bfloat16)
    transfer.per_layer(src, dst, torch.tensor([0]), torch.tensor([0]), 8)
    assert dst.view(torch.uint8).equal(src.view(torch.uint8))


BAD_INDICES = [
    (torch.tensor([0]), DST, ValueError, "dst_indices has 3 indices and src_indices has 1"),
    (torch.tensor([0, 1, 6]), DST, IndexError, "src_indices.2.=6 lies outside 0..5"),
    (SRC, torch.tensor([0, -1, 2]), IndexError, "dst_indices.1.=-1 lies outside 0..5"),
    (SRC, torch.tensor([1, 4, 1]), ValueError, "dst_indices names slot 1 more than once"),
    (SRC.int(), DST, ValueError, "src_indices.dtype=torch.int32 must be torch.int64"),
    (SRC, DST[None], ValueError, "dst_indices.dim..=2 must be 1"),
    (SRC, DST.to("meta"), ValueError, "dst_indices.device='meta'"),
]


@pytest.mark.parametrize(("src_indices", "dst_indices", "error", "text"), BAD_INDICES)
def test_bad_indices_are_refused_and_nothing_is_written(layer, src_indices, dst_indices, error, text):
    src, dst = layer(), layer()
    before = dst.clone()
    with pytest.raises(error, match=text):
        transfer.per_layer(src, dst, src_indices, dst_indices, ITEM)
    assert dst.equal(before)


def test_an_item_of_no_whole_words_is_refused(layer):
    with pytest.raises(ValueError, match="item_size=12 must be a multiple of 8"):
        transfer.per_layer(layer(), layer(), SRC, DST, 12)


def test_an_item_size_that_the_tensor_cannot_hold_is_refused(layer):
    with pytest.raises(ValueError, match="holds 144 bytes: no row of 200 bytes"):
        transfer.per_layer(layer(), layer(), SRC, DST, 200)


def test_a_table_of_other_length_is_refused(layer):
    with pytest.raises(ValueError, match=r"len.src_layers.=1 must be 2: num_layers"):
        transfer.all_layer([layer()], [layer(), layer()], SRC, DST, ITEM, 2)


def test_tables_of_unequal_rows_are_refused(layer, filled):
    wide = filled(torch.zeros(TOKENS, 1, ITEM + 8, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"row bytes of dst_layers.1.=32 must be 24"):
        transfer.direct([layer(), layer()], [layer(), wide], SRC, DST, 3)


def test_one_small_table_bounds_all(layer):
    with pytest.raises(IndexError, match=r"src_indices.0.=5 lies outside 0..4"):
        transfer.all_layer([layer(), layer()[:5]], [layer(), layer()], SRC, DST, ITEM, 2)


def test_a_layer_beyond_the_layout_dim_is_refused(layer, page_first):
    with pytest.raises(IndexError, match=r"layer_id=3 lies outside 0..2"):
        transfer.pf_lf(page_first, layer(), SRC, DST, 3, ITEM, DIM)


def test_a_layout_dim_of_no_whole_rows_is_refused(layer, page_first):
    with pytest.raises(ValueError, match="src_layout_dim=70 must be a multiple of 24"):
        transfer.pf_lf(page_first, layer(), SRC, DST, 0, ITEM, 70)


def test_direct_takes_whole_pages_of_indices(layer):
    with pytest.raises(ValueError, match=r"len.src_indices.=3 must be a multiple of 2"):
        transfer.direct([layer()], [layer()], SRC, DST, 2)


def test_a_tensor_with_gaps_has_no_packed_rows(layer, page_first):
    with pytest.raises(ValueError, match="expected a contiguous tensor"):
        transfer.per_layer(page_first[:, 1], layer(), SRC, DST, ITEM)
