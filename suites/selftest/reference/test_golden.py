"""Golden vectors: the bytes of every layout and dtype after a backup, so that a change of meaning is a visible diff.

`python suites/selftest/reference/test_golden.py` writes them anew; say in CHANGELOG.md why.
"""

import pytest
import torch
from safetensors.torch import load_file, save_file

from harness.data import fixtures_dir
from reference import LAYOUTS, PoolGeometry, transfer
from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost

PATH = fixtures_dir() / "golden" / "mla_host_layouts.safetensors"
DTYPES = ("bf16", "fp16", "fp32", "fp8_e4m3", "fp8_e5m2", "packed")
IO_BACKEND = {"page_first_direct": "direct", "page_first_kv_split": "kernel_ascend"}
# Pages of 4: device pages 1 and 2 go to host pages 2 and 0; host page 1 stays as it was, 0xEE.
HOST, DEVICE = torch.tensor([8, 9, 10, 11, 0, 1, 2, 3]), torch.arange(4, 12)


def geometry(dtype):
    packed = 48 if dtype == "packed" else None
    return PoolGeometry(
        layers=2,
        drafts=1,
        kv_lora_rank=24,
        qk_rope_head_dim=8,
        index_head_dim=8,
        indexer_layers=(1,),
        index_scale=True,
        packed_row_bytes=packed,
        page_size=4,
        device_tokens=8,
        host_ratio=1.0,
        dtype="fp8_e4m3" if packed else dtype,
    )


def fill(pool, first_layer):
    """Byte = 64*layer + 8*slot + lane, within a byte: what a reader can check by hand."""
    for component, layer in pool.planes:
        rows = pool.plane(component, layer)
        slot, lane = torch.arange(rows.shape[0])[:, None], torch.arange(rows.shape[1])
        rows.copy_((64 * (first_layer + layer) + 8 * slot + lane) % 256)


def host_buffers(layout, dtype):
    g = geometry(dtype)
    ascend = layout == "page_first_kv_split"
    kind = NPUMLATokenToKVPool if ascend else MLATokenToKVPool
    target, draft = kind(g), kind(g.draft)
    fill(target, 0)
    fill(draft, 2)
    platform = "ascend" if ascend else "cuda"
    host = MLATokenToKVPoolHost(target, layout, platform=platform, draft_device_pools=[draft])
    for buffer in host.buffers.values():
        buffer.fill_(0xEE)
    if layout == "page_unified":
        tables = [*target.kv_buffer, *draft.kv_buffer]
        transfer.unified_write_back(tables, host.tensor("latent"), DEVICE[::4] // 4, HOST[::4] // 4, 4)
    else:
        host.backup_from_device_all_layer(HOST, DEVICE, IO_BACKEND.get(layout, "kernel"))
    return {f"{layout}.{dtype}.{name}": buffer.clone() for name, buffer in host.buffers.items()}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_bytes_of_a_layout_are_the_golden_ones(layout, dtype):
    golden = load_file(PATH)
    for name, buffer in host_buffers(layout, dtype).items():
        assert buffer.equal(golden[name]), name


def test_no_golden_vector_is_left_over():
    now = {name for layout in LAYOUTS for dtype in DTYPES for name in host_buffers(layout, dtype)}
    assert set(load_file(PATH)) == now


def test_a_golden_row_by_hand():
    # Slot 9 holds device slot 5 of layer 1: bytes 64 + 40 + lane. page_first rows are (slot, layer).
    row = load_file(PATH)["page_first.bf16.latent"].view(12, 3, 64)[9, 1]
    assert row.tolist() == list(range(104, 168))


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    save_file({k: v for layout in LAYOUTS for dtype in DTYPES for k, v in host_buffers(layout, dtype).items()}, PATH)
