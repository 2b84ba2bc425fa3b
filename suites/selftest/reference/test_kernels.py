"""The fast kernels against `transfer`, to the bit; the Triton one in a process of its own, under the interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from reference.kernels import torch_copy
from reference.kernels.planes import device_planes, host_planes

INDEXER = {"index_head_dim": 16, "indexer_layers": (0, 2), "index_scale": True}
# Rows of 64 bytes move as scattered tokens, rows of 4 KiB (pages of 16 KiB) as whole pages.
WIDTHS = {"narrow": {}, "wide": {"kv_lora_rank": 2040}}


@pytest.fixture(params=WIDTHS)
def trio(request, geometry, pools, movable):
    return pools(geometry(drafts=1, **INDEXER, **WIDTHS[request.param]), movable)


def both(trio, component):
    target, drafts, host = trio
    return host_planes(host.host_layout, host.buffers[component], component), device_planes(target, drafts, component)


def test_backup_is_what_the_reference_backs_up(trio, io_backend, slots):
    to, source, host = slots(8, 0, 3), slots(4, 1, 2), trio[2]
    fast = {name: buffer.clone() for name, buffer in host.buffers.items()}
    host.backup_from_device_all_layer(to, source, io_backend)
    for name, buffer in fast.items():
        torch_copy.copy(host_planes(host.host_layout, buffer, name), to, both(trio, name)[1], source)
        assert buffer.equal(host.buffers[name])


def test_load_is_what_the_reference_loads(trio, io_backend, slots):
    source, to, (_, _, host) = slots(8, 0, 3), slots(4, 1, 2), trio
    fast = {c: [plane.clone() for plane in both(trio, c)[1]] for c in host.buffers}
    for layer in range(4):
        host.load_to_device_per_layer(source, to, layer, io_backend, is_draft=layer == 3)
    for component, planes in fast.items():
        torch_copy.copy(planes, to, both(trio, component)[0], source)
        assert all(p.equal(e) for p, e in zip(planes, both(trio, component)[1], strict=True))


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_scattered_tokens_move_too(geometry, pools, width):
    host, device = both(pools(geometry(**width), "page_first"), "latent")
    to, source = torch.tensor([35, 4, 7, 0]), torch.tensor([5, 18, 6, 4])
    torch_copy.copy(host, to, device, source)
    assert all(h.flatten(0, 1)[to].equal(d.flatten(0, 1)[source]) for h, d in zip(host, device, strict=True))


def test_a_page_in_another_order_is_no_whole_page(geometry, pools):
    host, device = both(pools(geometry(kv_lora_rank=2040), "layer_first"), "latent")
    to, source = torch.tensor([4, 5, 6, 7]), torch.tensor([4, 6, 5, 7])
    torch_copy.copy(host, to, device, source)
    assert host[2][1, 1].equal(device[2][1, 2])


BAD = [
    (lambda p: p[:2], "number of source planes=3 must be 2"),
    (lambda p: [p[0], p[1], p[2][:3]], "dst.2..shape=.* must be"),
    (lambda p: [plane.view(torch.int16) for plane in p], "dst.0..dtype=torch.int16 must be torch.uint8"),
    (lambda p: [plane[:, :, :8] for plane in p], "page and row of dst"),
    (lambda p: [p[0], p[1], p[2].transpose(0, 1).contiguous().transpose(0, 1)], "dst.2..stride"),
]


@pytest.mark.parametrize(("spoil", "text"), BAD)
def test_planes_that_do_not_fit_are_refused(geometry, pools, slots, spoil, text):
    host, device = both(pools(geometry(), "layer_first"), "latent")
    with pytest.raises(ValueError, match=text):
        torch_copy.copy(spoil(host), slots(1), device, slots(1))


def test_bad_indices_are_refused_and_nothing_is_written(geometry, pools, slots):
    trio = pools(geometry(), "layer_first")
    host, device = both(trio, "latent")
    before = trio[2].buffers["latent"].clone()
    with pytest.raises(IndexError, match=r"src_indices.0.=20 lies outside 0..19"):
        torch_copy.copy(host, slots(1), device, slots(5))
    assert trio[2].buffers["latent"].equal(before)


def test_the_triton_kernel_equals_the_torch_kernel():
    pytest.importorskip("triton", reason="the extra poolparity[triton] is not installed")
    script = Path(__file__).with_name("triton_equals_torch.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-2:] == ["19", "equal"]
