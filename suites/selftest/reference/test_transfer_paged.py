import pytest
import torch

from reference import transfer

PAGE, LAYERS, ROW = 4, 3, 16


@pytest.fixture
def device(filled):
    """Layers of 5 pages."""
    return [filled(torch.zeros(5 * PAGE, 1, ROW, dtype=torch.uint8)) for _ in range(LAYERS)]


@pytest.fixture
def direct_host(filled):
    """(pages, layers, page, 1, row): page_first_direct and, without the 1, page_unified."""
    return filled(torch.zeros(6, LAYERS, PAGE, 1, ROW, dtype=torch.uint8))


@pytest.fixture
def page_first_host(filled):
    return filled(torch.zeros(6 * PAGE, LAYERS, 1, ROW, dtype=torch.uint8))


def page(layer, number):
    return layer[number * PAGE : (number + 1) * PAGE]


def test_direct_lf_pf(device, direct_host, slots):
    expected = direct_host.clone()
    for layer in range(LAYERS):
        expected[5, layer], expected[0, layer] = page(device[layer], 2), page(device[layer], 4)
    transfer.direct_lf_pf(device, direct_host, slots(2, 4), slots(5, 0), PAGE)
    assert direct_host.equal(expected)


def test_direct_pf_lf(device, direct_host, slots):
    expected = device[1].clone()
    expected[8:12], expected[16:20] = direct_host[5, 1], direct_host[0, 1]
    transfer.direct_pf_lf(direct_host, device[1], slots(5, 0), slots(2, 4), 1, PAGE)
    assert device[1].equal(expected)


def test_staged_lf_pf(device, page_first_host, slots):
    expected = page_first_host.clone()
    for layer in range(LAYERS):
        page(expected[:, layer], 5).copy_(page(device[layer], 2))
    transfer.staged_lf_pf(device, page_first_host, slots(2), slots(5), PAGE)
    assert page_first_host.equal(expected)


def test_unified_write_back_takes_page_numbers(device, direct_host):
    expected = direct_host.clone()
    for layer in range(LAYERS):
        expected[3, layer] = page(device[layer], 1)
    transfer.unified_write_back(device, direct_host.squeeze(3), torch.tensor([1]), torch.tensor([3]), PAGE)
    assert direct_host.equal(expected)


def test_unified_load_takes_tokens(device, direct_host):
    expected = device[2].clone()
    expected[7], expected[18] = direct_host[3, 2, 1], direct_host[0, 2, 2]
    indices = torch.tensor([13, 2]), torch.tensor([7, 18])
    transfer.unified_load(direct_host.squeeze(3), device[2], *indices, 2)
    assert device[2].equal(expected)


def test_unified_load_of_nothing(device, direct_host):
    before = device[0].clone()
    transfer.unified_load(direct_host.squeeze(3), device[0], *[torch.zeros(0, dtype=torch.int64)] * 2, 0)
    assert device[0].equal(before)


BAD_PAGES = [
    ([1, 2, 3, 4], [0, 1, 2, 3], "src_indices.0.=1 must start a page: a multiple of 4"),
    ([0, 1, 2, 3], [0, 1, 3, 2], "dst_indices.2.=3 must be 2: the kernel reads only the first index"),
    ([0, 1, 2], [0, 1, 2], "must be a multiple of 4: the kernel moves whole pages"),
]


@pytest.mark.parametrize(("src", "dst", "text"), BAD_PAGES)
@pytest.mark.parametrize("kernel", ["direct_lf_pf", "staged_lf_pf"])
def test_what_is_no_page_is_refused_and_nothing_is_written(
    device, direct_host, page_first_host, kernel, src, dst, text
):
    host = direct_host if kernel == "direct_lf_pf" else page_first_host
    before = host.clone()
    with pytest.raises(ValueError, match=text):
        getattr(transfer, kernel)(device, host, torch.tensor(src), torch.tensor(dst), PAGE)
    assert host.equal(before)


def test_load_refuses_what_is_no_page(device, direct_host, slots):
    with pytest.raises(ValueError, match=r"dst_indices.0.=2 must start a page"):
        transfer.direct_pf_lf(direct_host, device[0], slots(1), slots(0) + 2, 0, PAGE)


def test_a_page_outside_is_refused(device, direct_host, slots):
    with pytest.raises(IndexError, match=r"src_indices.0.=20 lies outside 0..19"):
        transfer.direct_lf_pf(device, direct_host, slots(5), slots(0), PAGE)


def test_a_page_number_outside_is_refused(device, direct_host):
    with pytest.raises(IndexError, match=r"dst_pages.0.=6 lies outside 0..5"):
        transfer.unified_write_back(device, direct_host.squeeze(3), torch.tensor([0]), torch.tensor([6]), PAGE)


def test_a_layer_too_many_is_refused(device, direct_host, slots):
    with pytest.raises(ValueError, match=r"len.src_ptrs.=2 must be 3"):
        transfer.direct_lf_pf(device[:2], direct_host, slots(1), slots(1), PAGE)
    with pytest.raises(IndexError, match=r"layer_id=3 lies outside 0..2"):
        transfer.direct_pf_lf(direct_host, device[0], slots(1), slots(1), 3, PAGE)


def test_another_page_size_is_refused(device, direct_host, slots):
    with pytest.raises(ValueError, match=r"dst.shape.2.=4 must be 2: the page size"):
        transfer.direct_lf_pf(device, direct_host, slots(1), slots(1), 2)


def test_the_staged_kernel_moves_whole_vectors(device, page_first_host, slots):
    narrow = [layer[:, :, :8] for layer in device]
    with pytest.raises(ValueError, match="row bytes=8 must be a multiple of 16"):
        transfer.staged_lf_pf(narrow, page_first_host[:, :, :, :8], slots(1), slots(1), PAGE)
