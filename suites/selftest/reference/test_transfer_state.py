import pytest
import torch

from reference import transfer

SRC, DST = torch.tensor([3, 0]), torch.tensor([1, 4])


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def states(request, filled):
    """Device layers (5 slots, 2, 3), one strided, and a page-first host (6 slots, 2 layers, 1, 2, 3)."""
    wide = filled(torch.zeros(5, 4, 3, dtype=request.param))
    layers = [filled(torch.zeros(5, 2, 3, dtype=request.param)), wide[:, 1:3]]
    return layers, filled(torch.zeros(6, 2, 1, 2, 3, dtype=request.param))


def same(left, right):
    return left.contiguous().view(-1).view(torch.uint8).equal(right.contiguous().view(-1).view(torch.uint8))


def test_backup_puts_the_layers_of_a_slot_together(states):
    layers, host = states
    expected = host.clone()
    for layer in range(2):
        expected[1, layer, 0], expected[4, layer, 0] = layers[layer][3], layers[layer][0]
    transfer.state_lf_pf(layers, host, SRC, DST)
    assert same(host, expected)


@pytest.mark.parametrize("layer", [0, 1])
def test_load_takes_one_layer_of_a_slot(states, layer):
    layers, host = states
    expected = layers[layer].clone()
    expected[1], expected[4] = host[3, layer, 0], host[0, layer, 0]
    transfer.state_pf_lf(host, layers[layer], SRC, DST, layer)
    assert same(layers[layer], expected)


def test_bad_input_is_refused_and_nothing_is_written(states):
    layers, host = states
    before = host.clone()
    with pytest.raises(ValueError, match=r"len.src_layers.=1 must be 2"):
        transfer.state_lf_pf(layers[:1], host, SRC, DST)
    with pytest.raises(IndexError, match=r"dst_indices.1.=6 lies outside 0..5"):
        transfer.state_lf_pf(layers, host, SRC, DST + 2)
    with pytest.raises(IndexError, match=r"layer_id=2 lies outside 0..1"):
        transfer.state_pf_lf(host, layers[0], SRC, DST, 2)
    with pytest.raises(ValueError, match=r"row bytes of src_layers.1.="):
        transfer.state_lf_pf([layers[0], layers[0][:, :1]], host, SRC, DST)
    assert same(host, before)
