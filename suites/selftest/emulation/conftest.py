"""Memory for the doubles to move: random bytes in registered regions, and scattered indices."""

import numpy as np
import pytest
import torch

from harness.emulation.memory import AddressSpace


class Arena:
    """Buffers in one address space. Every buffer is random, so a byte that moves is seen."""

    def __init__(self, seed=0):
        self.memory = AddressSpace()
        self.calls = []
        self.rng = np.random.default_rng(seed)

    def buffer(self, *shape, kind="device", label="buffer", dtype=torch.uint8, register=True):
        nbytes = int(np.prod(shape)) * torch.empty(0, dtype=dtype).element_size()
        tensor = torch.from_numpy(self.rng.integers(0, 256, nbytes, dtype=np.uint8)).view(dtype).reshape(shape)
        if register:
            self.memory.register(tensor, label=label, kind=kind)
        return tensor

    def layers(self, count, slots, row, kind="device"):
        return [self.buffer(slots, row, kind=kind, label=f"{kind} layer {layer}") for layer in range(count)]

    def pages(self, count, of, page_size):
        """Token slots of `count` scattered pages out of `of`, in random order."""
        chosen = torch.from_numpy(self.rng.permutation(of)[:count].astype(np.int64))
        return (chosen[:, None] * page_size + torch.arange(page_size)).reshape(-1)

    def slots(self, count, of):
        """Scattered token slots in random order."""
        return torch.from_numpy(self.rng.permutation(of)[:count].astype(np.int64))


def table(tensors):
    return torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.uint64)


@pytest.fixture
def arena():
    return Arena()


@pytest.fixture(name="table")
def table_fixture():
    return table
