"""Bad input: an error that names the argument, its value and the bound, and nothing written."""

import pytest
import torch

from reference import IO_BACKENDS, LAYOUTS, Refused, decide
from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost

PLATFORMS = ("cuda", "rocm", "ascend", "xpu", "cpu")
REFUSED = [
    (platform, layout, io_backend)
    for platform in PLATFORMS
    for layout in LAYOUTS
    for io_backend in (*IO_BACKENDS, "warp")
    if isinstance(decide(platform, layout, io_backend), Refused)
]


@pytest.fixture
def unchanged():
    """Run something that must raise, and check that it wrote nothing."""

    def check(pools, action, error, text):
        target, drafts, host = pools
        before = [p.plane(*at).clone() for p in (target, *drafts) for at in p.planes]
        buffers = {name: buffer.clone() for name, buffer in host.buffers.items()}
        with pytest.raises(error, match=text):
            action(host)
        after = [p.plane(*at) for p in (target, *drafts) for at in p.planes]
        assert all(a.equal(b) for a, b in zip(after, before, strict=True))
        assert all(host.buffers[name].equal(buffer) for name, buffer in buffers.items())

    return check


@pytest.mark.parametrize(("platform", "layout", "io_backend"), REFUSED)
def test_what_the_matrix_refuses_is_refused(geometry, pools, slots, unchanged, platform, layout, io_backend):
    trio = pools(geometry(), layout, platform=platform)
    text = f"Unsupported (layout: {layout}|IO backend: {io_backend})"
    at = slots(1), slots(2)
    unchanged(trio, lambda host: host.backup_from_device_all_layer(*at, io_backend), ValueError, text)
    unchanged(trio, lambda host: host.load_to_device_per_layer(*at, 0, io_backend), ValueError, text)


BAD_SLOTS = [
    ([0, 1, 2, 3], [4, 5, 6], ValueError, "host_indices has 4 indices and device_indices has 3"),
    ([36, 37, 38, 39], [4, 5, 6, 7], IndexError, r"host_indices.0.=36 lies outside 0..35"),
    ([0, 1, 2, 3], [20, 21, 22, 23], IndexError, r"device_indices.0.=20 lies outside 0..19"),
    ([0, 1, 2, 3], [-4, -3, -2, -1], IndexError, r"device_indices.0.=-4 lies outside 0..19"),
    ([0, 0, 2, 3], [4, 5, 6, 7], ValueError, "host_indices names slot 0 more than once"),
]


@pytest.mark.parametrize(("host_slots", "device_slots", "error", "text"), BAD_SLOTS)
def test_bad_slots_are_refused(geometry, pools, movable, io_backend, unchanged, host_slots, device_slots, error, text):
    at = torch.tensor(host_slots), torch.tensor(device_slots)
    trio = pools(geometry(drafts=1), movable)
    unchanged(trio, lambda host: host.backup_from_device_all_layer(*at, io_backend), error, text)


def test_a_load_to_a_slot_named_twice_is_refused(geometry, pools, unchanged, slots):
    at = slots(1), torch.tensor([4, 5, 5, 6])
    text = "device_indices names slot 5 more than once"
    trio = pools(geometry(), "layer_first")
    unchanged(trio, lambda host: host.load_to_device_per_layer(*at, 0, "kernel"), ValueError, text)


@pytest.mark.parametrize(("layout", "io_backend"), [("page_first_direct", "direct"), ("page_first", "kernel")])
def test_part_of_a_page_is_refused_where_the_kernel_moves_pages(geometry, pools, unchanged, layout, io_backend):
    at = torch.tensor([0, 1]), torch.tensor([4, 5])
    text = r"indices.=2 must be a multiple of 4"
    trio = pools(geometry(drafts=1), layout)
    unchanged(trio, lambda host: host.backup_from_device_all_layer(*at, io_backend), ValueError, text)


@pytest.mark.parametrize(
    ("layer", "is_draft", "error", "text"),
    [
        (5, True, IndexError, r"layer_id=5 lies outside 0..4"),
        (-1, False, IndexError, r"layer_id=-1 lies outside"),
        (3, False, ValueError, "is_draft=False must be True: layer_id=3"),
        (2, True, ValueError, "is_draft=True must be False: layer_id=2"),
    ],
)
def test_a_bad_layer_is_refused(geometry, pools, unchanged, slots, movable, layer, is_draft, error, text):
    trio = pools(geometry(drafts=2), movable)
    load = {"layer_id": layer, "io_backend": "kernel", "is_draft": is_draft}
    unchanged(trio, lambda host: host.load_to_device_per_layer(slots(1), slots(2), **load), error, text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kv_lora_rank": 16}, "latent_row_bytes of draft_device_pools.1.=48 must be 64"),
        ({"kv_lora_rank": 16, "qk_rope_head_dim": 16}, "kv_lora_rank of draft_device_pools.1.=16 must be 24"),
        ({"dtype": "fp16"}, "dtype of draft_device_pools.1.='fp16' must be 'bf16'"),
        ({"layers": 2}, "layers of draft_device_pools.1.=2 must be 1"),
        ({"device_tokens": 32}, "device_slots of draft_device_pools.1.=36 must be 20"),
        ({"page_size": 2}, "page_size of draft_device_pools.1.=2 must be 4"),
    ],
)
def test_a_draft_that_does_not_fit_the_target_is_refused(geometry, fields, text):
    fine, other = MLATokenToKVPool(geometry(layers=1)), MLATokenToKVPool(geometry(**{"layers": 1, **fields}))
    with pytest.raises(ValueError, match=text):
        MLATokenToKVPoolHost(MLATokenToKVPool(geometry()), "layer_first", draft_device_pools=[fine, other])


def test_a_draft_of_another_kind_is_refused(geometry):
    draft = NPUMLATokenToKVPool(geometry(layers=1))
    with pytest.raises(ValueError, match=r"type of draft_device_pools.0.='NPUMLATokenToKVPool' must be"):
        MLATokenToKVPoolHost(MLATokenToKVPool(geometry()), "layer_first", draft_device_pools=[draft])


@pytest.mark.parametrize(
    ("layout", "io_backend", "jit", "text"),
    [
        ("page_first_kv_split", "kernel_ascend", True, "Unsupported IO backend: kernel_ascend moves all layers"),
        ("page_first_direct", "direct", True, "Unsupported layout: page_first_direct of a layer-sharded pool"),
        ("page_first", "kernel", False, "Unsupported layout: page_first of a layer-sharded pool"),
    ],
)
def test_what_a_layer_shard_cannot_do_is_refused(geometry, pools, unchanged, slots, layout, io_backend, jit, text):
    trio = pools(geometry(layer_shard_size=2), layout, jit=jit)
    at = slots(1), slots(2)
    unchanged(trio, lambda host: host.backup_from_device_all_layer(*at, io_backend), ValueError, text)


def test_dcp_slots_are_whole_logical_pages(geometry, pools, unchanged, slots):
    trio = pools(geometry(dcp_size=2), "layer_first")
    at = slots(1), slots(2)
    text = r"must be a multiple of 8"
    unchanged(trio, lambda host: host.backup_from_device_all_layer(*at, "kernel"), ValueError, text)


def test_an_unknown_layout_is_refused(geometry):
    with pytest.raises(ValueError, match="Unsupported layout: layout='page_head'"):
        MLATokenToKVPoolHost(MLATokenToKVPool(geometry()), "page_head")
