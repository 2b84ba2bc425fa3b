from itertools import count

import numpy as np
import pytest
import torch

from reference import LAYOUTS, PoolGeometry
from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost

IO_BACKEND = {
    "layer_first": "kernel",
    "page_first": "kernel",
    "page_first_direct": "direct",
    "page_first_kv_split": "kernel_ascend",
}


@pytest.fixture
def geometry():
    """A small geometry: 3 layers, rows of 32 elements, pages of 4, 5 device pages and 9 host pages."""

    def build(**fields):
        small = {"layers": 3, "kv_lora_rank": 24, "qk_rope_head_dim": 8, "page_size": 4, "device_tokens": 16}
        return PoolGeometry(**{**small, **fields})

    return build


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


@pytest.fixture(params=IO_BACKEND)
def movable(request):
    """A layout that some io backend moves."""
    return request.param


@pytest.fixture
def io_backend(movable):
    """The io backend that moves it."""
    return IO_BACKEND[movable]


@pytest.fixture
def filled():
    """Fill a tensor with bytes that nothing else was filled with; NaN payloads turn up in every dtype."""
    seeds = count(1)

    def fill(tensor):
        flat = tensor.view(-1).view(torch.uint8)
        flat.copy_(torch.from_numpy(np.random.default_rng(next(seeds)).integers(0, 256, flat.numel(), np.uint8)))
        return tensor

    return fill


@pytest.fixture
def pools(filled):
    """Build (target, drafts, host) of a geometry, all of them filled."""

    def build(geometry, layout, platform=None, **options):
        platform = platform or ("ascend" if layout == "page_first_kv_split" else "cuda")
        kind = NPUMLATokenToKVPool if platform == "ascend" else MLATokenToKVPool
        target, drafts = kind(geometry), [kind(geometry.draft) for _ in range(geometry.drafts)]
        for pool in (target, *drafts):
            for tensor in pool.kv_buffer if kind is MLATokenToKVPool else pool.tensors.values():
                filled(tensor)
        host = MLATokenToKVPoolHost(target, layout, platform=platform, draft_device_pools=drafts, **options)
        for buffer in host.buffers.values():
            filled(buffer)
        return target, drafts, host

    return build


@pytest.fixture
def slots():
    """Token slots of whole pages."""

    def build(*pages, page_size=4):
        return (torch.tensor(pages)[:, None] * page_size + torch.arange(page_size)).reshape(-1)

    return build
