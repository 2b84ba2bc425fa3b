"""The JIT modules at the seam of load_jit: compile conditions, meaning against loops over slots, preconditions."""

import pytest
import torch

from harness.emulation.doubles import jit_loader
from harness.emulation.doubles.jit_kernel import CompileError
from harness.emulation.doubles.jit_register import package_bytes
from harness.emulation.doubles.jit_tma import shared_bytes
from harness.errors import BadCall, EmulationGap, Misaligned, OutOfRegion, WrongDevice, WrongIndexDevice

LAYERS, SLOTS, COUNT, ROW = 3, 40, 17, 256
KINDS = {
    "register": (f"HiCacheKernel<{ROW}, 4, 2, 1024>", "jit."),
    "tma": ("HiCacheTmaKernel<32768, 6, 4, 4>", "jit.tma_"),
}


def compile_module(arena, cpp_class, *functions, platform="cuda", **options):
    load_jit = jit_loader(platform, arena.memory, arena.calls, **options)
    wrappers = [(f"launch_{function}", f"&{cpp_class}::run_{function}") for function in functions]
    return load_jit("marker", cuda_files=["kvcacheio/x.cuh"], cuda_wrappers=wrappers)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def module(arena, kind):
    return compile_module(arena, KINDS[kind][0], "one", "all", "one_mla", "all_mla")


@pytest.fixture(params=[torch.int32, torch.int64])
def indices(arena, request):
    return arena.slots(COUNT, SLOTS).to(request.param), arena.slots(COUNT, SLOTS).to(request.param)


# ---- what compiles


@pytest.mark.parametrize(
    ("platform", "row", "unroll", "package"),
    [
        ("cuda", 1152, 1, 4),
        ("cuda", 1024, 2, 8),
        ("cuda", 512, 4, 16),
        ("cuda", 576, 2, 0),
        ("cuda", 656, 2, 0),
        ("cuda", 512, 8, 0),
        ("cuda", 512, 3, 0),
        ("cuda", 512, 0, 0),
        ("rocm", 576, 2, 4),
        ("rocm", 656, 2, 0),
        ("rocm", 656, 8, 4),
        ("rocm", 64, 4, 8),
        ("xpu", 512, 4, 0),
    ],
)
def test_package_that_tiles_an_element(platform, row, unroll, package):
    assert package_bytes(platform, row, unroll) == package


def test_element_that_does_not_tile_does_not_compile(arena):
    with pytest.raises(CompileError, match=r"jit.one_layer_mla<576, 2, 2, 1024> on cuda: static assertion failed"):
        compile_module(arena, "HiCacheKernel<576, 2, 2, 1024>", "one_mla")


def test_tma_compiles_on_cuda_only(arena):
    with pytest.raises(CompileError, match="on rocm"):
        compile_module(arena, KINDS["tma"][0], "one_mla", platform="rocm")


@pytest.mark.parametrize("template", ["32760, 6, 4, 4", "32768, 2, 4, 4", "32768, 6, 0, 4"])
def test_tma_ring_that_does_not_compile(arena, template):
    with pytest.raises(CompileError, match="static assertion failed"):
        compile_module(arena, f"HiCacheTmaKernel<{template}>", "one_mla")


def test_tma_ring_must_fit_the_device(arena):
    functions = {"fits": "HiCacheTmaKernel<32768, 6, 4, 4>", "too_big": "HiCacheTmaKernel<32768, 8, 4, 4>"}
    wrappers = [(name, f"&{cpp_class}::fits_device") for name, cpp_class in functions.items()]
    loaded = jit_loader("cuda", arena.memory, arena.calls)("tma", cuda_wrappers=wrappers)
    assert (loaded.fits(0), loaded.too_big(0)) == (True, False)
    assert shared_bytes(32768, 6) == 202880


def test_module_has_only_what_the_caller_exports(arena):
    loaded = compile_module(arena, KINDS["register"][0], "one_mla")
    assert not hasattr(loaded, "launch_all_mla")


def test_compiling_can_be_switched_off(arena):
    with pytest.raises(CompileError, match="compiling is switched off"):
        compile_module(arena, KINDS["register"][0], "one_mla", available=False)


def test_kernel_without_a_double_fails_when_called(arena):
    loaded = jit_loader("cuda", arena.memory, arena.calls)("other", cuda_wrappers=[("run", "&StoreKernel<1>::run")])
    with pytest.raises(EmulationGap, match="StoreKernel<1>::run was called"):
        loaded.run(1, 2)


@pytest.mark.parametrize("arguments", [(), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_launch_functions_take_their_arguments_by_position(module, arguments):
    with pytest.raises(TypeError):
        module.launch_one_mla(*arguments)


# ---- meaning


def test_one_mla(arena, kind, module, indices):
    src, dst = arena.buffer(SLOTS, ROW, kind="host"), arena.buffer(SLOTS, ROW)
    expected = dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other] = src[one]
    module.launch_one_mla(dst, indices[1], src, indices[0])
    assert torch.equal(dst, expected)
    assert arena.calls == [KINDS[kind][1] + "one_layer_mla"]


def test_one_mla_from_a_page_first_buffer(arena, module, indices):
    src, dst = arena.buffer(SLOTS, LAYERS, ROW // 2, kind="host", dtype=torch.int16), arena.buffer(SLOTS, ROW)
    dst = dst.view(torch.int16)
    expected = dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[other] = src[one, 1]
    module.launch_one_mla(dst, indices[1], src[:, 1], indices[0])
    assert torch.equal(dst, expected)


def test_one(arena, module, indices):
    k_src, v_src, k_dst, v_dst = (arena.buffer(SLOTS, ROW) for _ in range(4))
    expected = k_dst.clone(), v_dst.clone()
    for one, other in zip(*(side.tolist() for side in indices), strict=True):
        expected[0][other], expected[1][other] = k_src[one], v_src[one]
    module.launch_one(k_dst, v_dst, indices[1], k_src, v_src, indices[0])
    assert torch.equal(k_dst, expected[0])
    assert torch.equal(v_dst, expected[1])


def row_size(kind):
    return (ROW,) if kind == "tma" else ()


def test_all_mla_into_a_page_first_buffer(arena, kind, module, table, indices):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.buffer(SLOTS, LAYERS, ROW, kind="host")
    expected = dst.clone()
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[other, layer] = src[layer][one]
    pointers = table([dst[:, layer] for layer in range(LAYERS)])
    module.launch_all_mla(pointers, indices[1], table(src), indices[0], ROW, ROW * LAYERS, *row_size(kind))
    assert torch.equal(dst, expected)


def test_all(arena, kind, module, table, indices):
    k_src, v_src, k_dst, v_dst = (arena.layers(LAYERS, SLOTS, ROW) for _ in range(4))
    expected = torch.stack(k_dst), torch.stack(v_dst)
    for layer in range(LAYERS):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            expected[0][layer, other], expected[1][layer, other] = k_src[layer][one], v_src[layer][one]
    tables = [table(layers) for layers in (k_dst, v_dst, k_src, v_src)]
    module.launch_all(*tables[:2], indices[1], *tables[2:], indices[0], ROW, ROW, *row_size(kind))
    assert torch.equal(torch.stack(k_dst), expected[0])
    assert torch.equal(torch.stack(v_dst), expected[1])


def test_tma_takes_any_row_of_16_byte_units(arena, indices):
    loaded = compile_module(arena, KINDS["tma"][0], "one_mla")
    src, dst = arena.buffer(SLOTS, 656, kind="host"), arena.buffer(SLOTS, 656)
    loaded.launch_one_mla(dst, indices[1], src, indices[0])
    assert torch.equal(dst[indices[1].long()], src[indices[0].long()])


def test_tma_takes_no_index(arena):
    loaded = compile_module(arena, KINDS["tma"][0], "one_mla")
    src, dst, empty = arena.buffer(SLOTS, 16), arena.buffer(SLOTS, 16), torch.arange(0)
    before = dst.clone()
    loaded.launch_one_mla(dst, empty, src, empty)
    assert torch.equal(dst, before)


# ---- preconditions


@pytest.fixture
def one(arena, module):
    dst = arena.buffer(SLOTS, ROW, label="device latent")
    defaults = {
        "dst": dst,
        "i_dst": torch.arange(4),
        "src": arena.buffer(SLOTS, ROW, kind="host"),
        "i_src": torch.arange(4),
    }
    before = dst.clone()

    def call(**changed):
        try:
            module.launch_one_mla(*{**defaults, **changed}.values())
        finally:
            assert torch.equal(dst, before)

    return call


def test_cache_must_be_rows(arena, one):
    with pytest.raises(BadCall, match=r"cache_src has shape \(40, 2, 128\)"):
        one(src=arena.buffer(SLOTS, 2, ROW // 2))


def test_rows_must_be_contiguous(arena, one):
    with pytest.raises(BadCall, match="with contiguous rows"):
        one(src=arena.buffer(SLOTS, 2 * ROW)[:, ::2])


def test_caches_must_have_one_dtype(arena, one):
    with pytest.raises(BadCall, match=r"cache_src is torch\.int8, cache_dst is torch\.uint8; expected one dtype"):
        one(src=arena.buffer(SLOTS, ROW, dtype=torch.int8))


def test_caches_must_have_one_row_width(arena, one):
    with pytest.raises(BadCall, match="cache_src has a row width of 128 bytes, cache_dst has a row width of 256"):
        one(src=arena.buffer(SLOTS, ROW // 2))


def test_index_dtypes_must_agree(one):
    with pytest.raises(BadCall, match="expected one index dtype"):
        one(i_src=torch.arange(4, dtype=torch.int32))


def test_other_index_dtype(one):
    with pytest.raises(BadCall, match=r"indices_src is torch\.int16; expected torch\.int64 or torch\.int32"):
        one(i_src=torch.arange(4, dtype=torch.int16))


def test_indices_must_pair(one):
    with pytest.raises(BadCall, match="5 source and 4 destination indices"):
        one(i_src=torch.arange(5))


def test_indices_known_to_be_on_the_host_are_refused(arena, one):
    host = torch.arange(4)
    arena.memory.register(host, label="host indices", kind="host")
    with pytest.raises(WrongIndexDevice, match="indices_dst lies on the host"):
        one(i_dst=host)


def test_negative_index(one):
    with pytest.raises(OutOfRegion, match="the source indices: index -1"):
        one(i_src=torch.arange(4) - 1)


def test_index_behind_the_pool(one):
    with pytest.raises(
        OutOfRegion, match=r"destination, slot 40: bytes 10240\.\.10496 lie outside region 'device latent'"
    ):
        one(i_dst=torch.arange(4) + SLOTS - 3)


def test_duplicated_destination(one):
    with pytest.raises(BadCall, match="written to the same bytes"):
        one(i_dst=torch.tensor([0, 1, 2, 1]))


def test_misaligned_address(arena, one):
    with pytest.raises(Misaligned, match="source: the address"):
        one(src=arena.buffer(SLOTS * ROW + 8)[2:-6].view(SLOTS, ROW))


def test_misaligned_stride(arena, one):
    with pytest.raises(Misaligned, match="the source stride is 258"):
        one(src=arena.buffer(SLOTS, ROW + 2)[:, :ROW])


def test_row_that_the_module_was_not_compiled_for(arena):
    loaded = compile_module(arena, KINDS["register"][0], "one_mla")
    caches = arena.buffer(SLOTS, ROW // 2), arena.buffer(SLOTS, ROW // 2)
    with pytest.raises(BadCall, match="rows of 128 bytes; expected the 256 bytes that the module was compiled for"):
        loaded.launch_one_mla(caches[0], torch.arange(4), caches[1], torch.arange(4))


def test_register_kernel_cannot_launch_without_indices(arena):
    loaded = compile_module(arena, KINDS["register"][0], "one_mla")
    caches = arena.buffer(SLOTS, ROW), arena.buffer(SLOTS, ROW)
    with pytest.raises(BadCall, match="the index list is empty"):
        loaded.launch_one_mla(caches[0], torch.arange(0), caches[1], torch.arange(0))


@pytest.mark.parametrize(("row", "error"), [(24, Misaligned), (32784, BadCall)])
def test_tma_row_sizes(arena, row, error):
    loaded = compile_module(arena, KINDS["tma"][0], "one_mla")
    caches = arena.buffer(8, row), arena.buffer(8, row)
    with pytest.raises(error, match=r"the row size is 24|rows of 32784 bytes"):
        loaded.launch_one_mla(caches[0], torch.arange(4), caches[1], torch.arange(4))


def test_k_and_v_must_have_one_stride(arena, module):
    wide = arena.buffer(SLOTS, 2 * ROW)[:, :ROW]
    k, v, dst = arena.buffer(SLOTS, ROW), wide, [arena.buffer(SLOTS, ROW) for _ in range(2)]
    with pytest.raises(BadCall, match="k_cache_src has a row stride of 256 bytes, v_cache_src has a row stride of 512"):
        module.launch_one(*dst, torch.arange(4), k, v, torch.arange(4))


@pytest.fixture
def every(arena, kind, module, table):
    src, dst = arena.layers(LAYERS, SLOTS, ROW), arena.layers(LAYERS, SLOTS, ROW, kind="host")
    defaults = {
        "dst": table(dst),
        "i_dst": torch.arange(4),
        "src": table(src),
        "i_src": torch.arange(4),
        "src_stride": ROW,
        "dst_stride": ROW,
    }
    before = torch.stack(dst)

    def call(**changed):
        try:
            module.launch_all_mla(*{**defaults, **changed}.values(), *row_size(kind))
        finally:
            assert torch.equal(torch.stack(dst), before)

    call.src, call.dst = src, dst
    return call


def test_tables_must_have_as_many_layers(every, table):
    with pytest.raises(BadCall, match="ptr_src has 3 pointers, ptr_dst has 2 pointers"):
        every(dst=table(every.dst[:2]))


def test_table_must_be_uint64(every, table):
    with pytest.raises(BadCall, match=r"ptr_src is torch\.int64"):
        every(src=table(every.src).view(torch.int64))


def test_table_known_to_be_on_the_host_is_refused(arena, every, table):
    pointers = table(every.dst)
    arena.memory.register(pointers, label="table", kind="host")
    with pytest.raises(WrongDevice, match="ptr_dst lies on the host"):
        every(dst=pointers)


def test_stride_that_reaches_behind_the_layer(every):
    with pytest.raises(OutOfRegion, match=r"source layer 0, slot 2: .* lie outside region 'device layer 0'"):
        every(src_stride=ROW * 20)


def test_stride_smaller_than_a_row(every):
    with pytest.raises(BadCall, match="written to the same bytes"):
        every(dst_stride=ROW // 2)


@pytest.mark.parametrize("stride", [0, -ROW])
def test_stride_is_positive(every, stride):
    with pytest.raises(BadCall, match="expected a positive integer"):
        every(src_stride=stride)


def test_pointer_into_nowhere(every, table):
    wild = table(every.src)
    wild.view(torch.int64)[1] = 256
    with pytest.raises(OutOfRegion, match="source layer 1: address 0x100"):
        every(src=wild)
