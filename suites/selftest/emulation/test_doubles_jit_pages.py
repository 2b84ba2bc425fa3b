"""The JIT modules that move pages: staged write-back and page_unified, against loops over slots."""

import pytest
import torch

from harness.emulation.doubles import jit_loader
from harness.emulation.doubles.jit_kernel import CompileError
from harness.errors import BadCall, Misaligned, OutOfRegion, WrongDevice, WrongIndexDevice

LAYERS, PAGES, PAGE, ROW = 3, 8, 4, 48
SLOTS = PAGES * PAGE


def exports(arena, **functions):
    return jit_loader("cuda", arena.memory, arena.calls)("marker", cuda_wrappers=list(functions.items()))


STAGED = f"HiCacheStagedWriteBackKernel<{ROW}, 4, 2, 1024>"


@pytest.fixture
def staged(arena):
    return exports(arena, mla=f"&{STAGED}::run_all_mla_lf_pf_staged", kv=f"&{STAGED}::run_all_lf_pf_staged")


@pytest.fixture(params=[torch.int32, torch.int64])
def pages(arena, request):
    """(source page starts, destination token slots)."""
    return arena.pages(5, PAGES, PAGE)[::PAGE].to(request.param).contiguous(), arena.pages(5, PAGES, PAGE)


def whole(starts):
    return [start + token for start in starts.tolist() for token in range(PAGE)]


def test_staged_mla(arena, staged, table, pages):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.buffer(SLOTS, LAYERS, ROW, kind="host")
    staging, expected = arena.buffer(5 * PAGE, LAYERS, ROW), dst.clone()
    for layer in range(LAYERS):
        for one, other in zip(whole(pages[0]), pages[1].tolist(), strict=True):
            expected[other, layer] = src[layer][one]
    staged.mla(dst, pages[1], staging, pages[0], table(src), PAGE)
    assert torch.equal(dst, expected)
    assert torch.equal(staging, expected[pages[1]])
    assert arena.calls == ["jit.all_layer_mla_staged_lf_pf"]


def test_staged_k_and_v(arena, staged, table, pages):
    k_src, v_src = arena.layers(LAYERS, SLOTS, ROW), arena.layers(LAYERS, SLOTS, ROW)
    k_dst, v_dst = (arena.buffer(SLOTS, LAYERS, ROW, kind="host") for _ in range(2))
    staging, expected = [arena.buffer(5 * PAGE, LAYERS, ROW) for _ in range(2)], (k_dst.clone(), v_dst.clone())
    for layer in range(LAYERS):
        for one, other in zip(whole(pages[0]), pages[1].tolist(), strict=True):
            expected[0][other, layer], expected[1][other, layer] = k_src[layer][one], v_src[layer][one]
    staged.kv(k_dst, v_dst, pages[1], *staging, pages[0], table(k_src), table(v_src), PAGE)
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


def test_staged_without_pages(arena, staged, table):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.buffer(SLOTS, LAYERS, ROW, kind="host")
    before = dst.clone()
    staged.mla(dst, torch.arange(0), arena.buffer(4, LAYERS, ROW)[:0], torch.arange(0), table(src), PAGE)
    assert torch.equal(dst, before)


def test_staged_rows_of_16_bytes_only(arena):
    with pytest.raises(CompileError, match="no multiple of 16 bytes"):
        exports(arena, mla="&HiCacheStagedWriteBackKernel<24, 4, 2, 1024>::run_all_mla_lf_pf_staged")


@pytest.fixture
def back(arena, staged, table):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.buffer(SLOTS, LAYERS, ROW, kind="host", label="host pool")
    defaults = {
        "dst": dst,
        "dst_indices": torch.arange(8),
        "staging": arena.buffer(8, LAYERS, ROW, label="staging"),
        "starts": torch.tensor([4, 16]),
        "table": table(src),
        "page_size": PAGE,
    }
    before = dst.clone()

    def call(**changed):
        try:
            staged.mla(*{**defaults, **changed}.values())
        finally:
            assert torch.equal(dst, before)

    call.src, call.dst = src, dst
    return call


def test_source_page_must_be_aligned(back):
    with pytest.raises(Misaligned, match="page_indices_src: page 1 of the call starts at slot 17"):
        back(starts=torch.tensor([4, 17]))


def test_unread_destination_indices_must_follow(back):
    with pytest.raises(BadCall, match="dst_indices_cpu, page 1 of the call: slot 6 in position 1 after 4"):
        back(dst_indices=torch.tensor([0, 1, 2, 3, 4, 6, 5, 7]))


def test_destination_indices_must_be_int64(back):
    with pytest.raises(BadCall, match=r"dst_indices_cpu is torch\.int32; expected torch\.int64"):
        back(dst_indices=torch.arange(8, dtype=torch.int32))


def test_destination_indices_known_to_be_on_the_device_are_refused(arena, back):
    moved = torch.arange(8)
    arena.memory.register(moved, label="device indices", kind="device")
    with pytest.raises(WrongIndexDevice, match="dst_indices_cpu lies on the device"):
        back(dst_indices=moved)


def test_page_counts_must_pair(back):
    with pytest.raises(BadCall, match="8 destination indices for 1 pages of 4"):
        back(starts=torch.tensor([4]))


def test_staging_must_hold_exactly_the_tokens(arena, back):
    with pytest.raises(BadCall, match=r"staging has shape \(12, 3, 48\).*expected a contiguous \(8, 3, any\)"):
        back(staging=arena.buffer(12, LAYERS, ROW))


def test_staging_must_have_the_layers_of_the_table(arena, back):
    with pytest.raises(BadCall, match=r"expected a contiguous \(8, 3, any\)"):
        back(staging=arena.buffer(8, LAYERS - 1, ROW))


def test_destination_must_have_the_layers_of_the_table(arena, back):
    with pytest.raises(BadCall, match=r"cache_dst has shape .*expected a contiguous \(any, 3, 48\)"):
        back(dst=arena.buffer(SLOTS, LAYERS + 2, ROW, kind="host"))


def test_destination_must_be_contiguous(arena, back):
    with pytest.raises(BadCall, match="cache_dst has shape"):
        back(dst=arena.buffer(SLOTS, LAYERS + 1, ROW, kind="host")[:, :LAYERS])


def test_staging_belongs_on_the_device(arena, back):
    with pytest.raises(WrongDevice, match="staging lies on the host"):
        back(staging=arena.buffer(8, LAYERS, ROW, kind="host"))


def test_destination_belongs_on_the_host(arena, back):
    with pytest.raises(WrongDevice, match="cache_dst lies on the device"):
        back(dst=arena.buffer(SLOTS, LAYERS, ROW))


def test_staged_dtypes_must_agree(arena, back):
    with pytest.raises(BadCall, match="expected one dtype"):
        back(staging=arena.buffer(8, LAYERS, ROW, dtype=torch.int8))


def test_staged_row_that_was_not_compiled_for(arena, back):
    with pytest.raises(BadCall, match="staging holds elements of 32 bytes; expected the 48"):
        back(staging=arena.buffer(8, LAYERS, 32), dst=arena.buffer(SLOTS, LAYERS, 32, kind="host"))


def test_staged_source_page_out_of_range(back):
    with pytest.raises(OutOfRegion, match=r"source layer 0, slot 32: bytes 1536\.\.1584 lie outside"):
        back(starts=torch.tensor([4, 32]))


def test_staged_destination_page_out_of_range(back):
    with pytest.raises(OutOfRegion, match=r"cache_dst layer 0, slot 32: .* 'host pool'"):
        back(dst_indices=torch.tensor([0, 1, 2, 3, 29, 30, 31, 32]))


def test_staged_negative_page(back):
    with pytest.raises(OutOfRegion, match="page_indices_src: index -4"):
        back(starts=torch.tensor([4, -4]))


def test_staged_destination_twice(back):
    with pytest.raises(BadCall, match="written to the same bytes"):
        back(dst_indices=torch.arange(4).repeat(2))


# ---- page_unified

GROUPS, HEADS = 2, 4  # heads a group


@pytest.fixture
def unified(arena):
    load = f"&HiCacheKernel<{ROW}, 1, 2, 1024>::run_one_page_unified"
    store = "&HiCachePageUnifiedWriteBackKernel"
    return exports(
        arena,
        load=load + "<false>",
        load_mla=load + "<true>",
        store=f"{store}<{ROW}, false>::run",
        store_mla=f"{store}<{ROW}, true>::run",
    )


@pytest.mark.parametrize("layer", range(LAYERS))
def test_load_page_unified(arena, unified, layer):
    host = arena.buffer(PAGES, GROUPS, LAYERS, 2, PAGE, ROW, kind="host")
    k, v = arena.buffer(SLOTS, GROUPS, ROW), arena.buffer(SLOTS, GROUPS, ROW)
    indices, expected = (arena.slots(11, SLOTS), arena.slots(11, SLOTS)), (k.clone(), v.clone())
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        for part in range(2):
            expected[part][other] = host[one // PAGE, :, layer, part, one % PAGE]
    rows = k.view(SLOTS, -1), v.view(SLOTS, -1), host.view(PAGES, -1)
    unified.load(*rows, *indices, layer, LAYERS, GROUPS, PAGE)
    assert torch.equal(k, expected[0])
    assert torch.equal(v, expected[1])


def test_load_mla_page_unified(arena, unified):
    host, dst = arena.buffer(PAGES, LAYERS, PAGE, ROW, kind="host"), arena.buffer(SLOTS, ROW)
    indices, expected = (arena.slots(11, SLOTS), arena.slots(11, SLOTS)), dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other] = host[one // PAGE, 2, one % PAGE]
    unified.load_mla(dst, dst, host.view(PAGES, -1), *indices, 2, LAYERS, 1, PAGE)
    assert torch.equal(dst, expected)


def test_store_page_unified(arena, unified, table):
    k, v = ([arena.buffer(SLOTS, GROUPS, ROW) for _ in range(LAYERS)] for _ in range(2))
    host = arena.buffer(PAGES, GROUPS, LAYERS, 2, PAGE, ROW, kind="host")
    staging, expected = arena.buffer(5, *host.shape[1:]), host.clone()
    pages = arena.slots(5, PAGES).int(), arena.slots(5, PAGES)
    for one, other in zip(*(side.tolist() for side in pages), strict=True):
        for layer in range(LAYERS):
            for part, layers in enumerate((k, v)):
                rows = layers[layer][one * PAGE : one * PAGE + PAGE]
                expected[other, :, layer, part] = rows.transpose(0, 1)
    unified.store(host.view(PAGES, -1), staging.view(5, -1), table(k), table(v), *pages, GROUPS, PAGE)
    assert torch.equal(host, expected)
    assert torch.equal(staging, expected[pages[1]])


def test_store_mla_page_unified(arena, unified, table):
    layers, host = arena.layers(LAYERS, SLOTS, ROW), arena.buffer(PAGES, LAYERS, PAGE, ROW, kind="host")
    staging, expected = arena.buffer(5, LAYERS, PAGE, ROW), host.clone()
    pages = arena.slots(5, PAGES), arena.slots(5, PAGES)
    for one, other in zip(*(side.tolist() for side in pages), strict=True):
        for layer in range(LAYERS):
            expected[other, layer] = layers[layer][one * PAGE : one * PAGE + PAGE]
    pointers = table(layers)
    unified.store_mla(host.view(PAGES, -1), staging.view(5, -1), pointers, pointers, *pages, 1, PAGE)
    assert torch.equal(host, expected)


def test_page_unified_row_of_16_bytes_only(arena):
    with pytest.raises(CompileError, match="no positive multiple of 16 bytes"):
        exports(arena, load="&HiCacheKernel<24, 1, 2, 1024>::run_one_page_unified<true>")


@pytest.fixture
def load(arena, unified):
    dst, host = arena.buffer(SLOTS, ROW), arena.buffer(PAGES, LAYERS * PAGE * ROW, kind="host")
    defaults = {
        "k": dst,
        "v": dst,
        "src": host,
        "src_indices": torch.arange(4),
        "dst_indices": torch.arange(4),
        "layer_id": 0,
        "num_layers": LAYERS,
        "num_groups": 1,
        "page_size": PAGE,
    }
    before = dst.clone()

    def call(**changed):
        try:
            unified.load_mla(*{**defaults, **changed}.values())
        finally:
            assert torch.equal(dst, before)

    return call


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"layer_id": LAYERS}, OutOfRegion, "layer_id is 3"),
        ({"layer_id": -1}, OutOfRegion, "layer_id is -1"),
        ({"num_layers": 2}, BadCall, "src has pages of 576 bytes; expected 384"),
        ({"num_groups": 2}, BadCall, "expected 1 for MLA"),
        ({"page_size": 0}, BadCall, "page_size is 0"),
        ({"src_indices": torch.tensor([0, 1, 2, SLOTS])}, OutOfRegion, "source k layer 0 group 0, slot 32"),
        ({"dst_indices": torch.tensor([0, 1, 2, SLOTS])}, OutOfRegion, "destination k layer 0 group 0, slot 32"),
        ({"src_indices": torch.tensor([0, 1, 2, -1])}, OutOfRegion, "src_indices: index -1"),
        ({"dst_indices": torch.tensor([0, 1, 2, 2])}, BadCall, "written to the same bytes"),
        ({"dst_indices": torch.arange(3)}, BadCall, "4 source and 3 destination indices"),
    ],
)
def test_load_page_unified_refuses(load, changed, error, message):
    with pytest.raises(error, match=message):
        load(**changed)


def test_load_page_unified_into_wider_rows(arena, load):
    wide = arena.buffer(SLOTS, 2 * ROW)
    with pytest.raises(BadCall, match="k_cache_dst has rows of 96 bytes; expected 48"):
        load(k=wide, v=wide)


@pytest.fixture
def store(arena, unified, table):
    pointers = table(arena.layers(LAYERS, SLOTS, ROW))
    host = arena.buffer(PAGES, LAYERS * PAGE * ROW, kind="host", label="host pool")
    defaults = {
        "dst": host,
        "staging": arena.buffer(2, LAYERS * PAGE * ROW),
        "k": pointers,
        "v": pointers,
        "src_pages": torch.tensor([1, 5]),
        "dst_pages": torch.tensor([0, 3]),
        "num_groups": 1,
        "page_size": PAGE,
    }
    before = host.clone()

    def call(**changed):
        try:
            unified.store_mla(*{**defaults, **changed}.values())
        finally:
            assert torch.equal(host, before)

    return call


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"dst_pages": torch.tensor([0, PAGES])}, OutOfRegion, "dst .*page 8: .* 'host pool'"),
        ({"dst_pages": torch.tensor([0, -1])}, OutOfRegion, "dst_pages: index -1"),
        ({"dst_pages": torch.tensor([3, 3])}, BadCall, "written to the same bytes"),
        ({"dst_pages": torch.tensor([3, 4], dtype=torch.int32)}, BadCall, "dst_pages is torch.int32"),
        ({"src_pages": torch.tensor([1, PAGES])}, OutOfRegion, "source k layer 0 group 0, slot 32"),
        ({"src_pages": torch.tensor([1])}, BadCall, "1 source and 2 destination indices"),
        ({"page_size": 2}, BadCall, "staging has pages of 576 bytes; expected 288"),
        ({"num_groups": 3}, BadCall, "expected 1 for MLA"),
    ],
)
def test_store_page_unified_refuses(store, changed, error, message):
    with pytest.raises(error, match=message):
        store(**changed)
