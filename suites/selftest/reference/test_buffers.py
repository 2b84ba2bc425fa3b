"""Which buffers an io backend needs: kernel_ascend must never touch a pointer table."""

import pytest

from reference.buffers import LayerTables, SplitTensors, needed_buffers
from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool


class Untouchable(NPUMLATokenToKVPool):
    @property
    def data_ptrs(self):
        msg = "the pointer table was touched"
        raise AssertionError(msg)


def test_kernel_ascend_touches_no_pointer_table(geometry):
    target, draft = Untouchable(geometry()), Untouchable(geometry().draft)
    found = needed_buffers("kernel_ascend", target, [draft])
    assert isinstance(found, SplitTensors)
    assert [pool["k"].shape[0] for pool in found.pools] == [3, 1]


@pytest.mark.parametrize("io_backend", ["kernel", "direct"])
def test_other_backends_need_layer_tables_with_drafts_last(geometry, io_backend):
    target, draft = MLATokenToKVPool(geometry()), MLATokenToKVPool(geometry().draft)
    found = needed_buffers(io_backend, target, [draft])
    assert isinstance(found, LayerTables)
    assert found.layers[3] is draft.kv_buffer[0]
    assert found.data_ptrs.tolist() == [tensor.data_ptr() for tensor in found.layers]


@pytest.mark.parametrize(("io_backend", "kind"), [("kernel_ascend", MLATokenToKVPool), ("kernel", NPUMLATokenToKVPool)])
def test_a_pool_of_another_kind_is_refused(geometry, io_backend, kind):
    with pytest.raises(ValueError, match=f"{io_backend} moves .*; got {kind.__name__}"):
        needed_buffers(io_backend, kind(geometry()), [])


def test_an_unknown_backend_is_refused(geometry):
    with pytest.raises(ValueError, match="io_backend='warp'; expected kernel, direct or kernel_ascend"):
        needed_buffers("warp", MLATokenToKVPool(geometry()), [])
