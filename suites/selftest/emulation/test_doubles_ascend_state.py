"""The Mamba state transfers of the Ascend build against loops over slots, and their preconditions."""

import pytest
import torch

from harness.emulation.doubles import ascend_kvcacheio_module
from harness.errors import BadCall, OutOfRegion, WrongDevice

LAYERS, SLOTS, HOST_SLOTS = 3, 9, 7
FIRST = torch.arange(3), torch.arange(3)
D2H, H2D = "transfer_state_all_layer_direct_lf_pf", "transfer_state_per_layer_direct_pf_lf"


@pytest.fixture
def vendor(arena):
    return ascend_kvcacheio_module(arena.memory, arena.calls, "K0")


@pytest.fixture
def states(arena):
    shapes = {torch.float32: (4, 3), torch.int16: (5,)}
    device = [arena.buffer(LAYERS, SLOTS, *shape, dtype=dtype) for dtype, shape in shapes.items()]
    host = [arena.buffer(HOST_SLOTS, LAYERS, 1, *shape, dtype=dtype, kind="host") for dtype, shape in shapes.items()]
    return [state.view(torch.int32) if state.dtype == torch.float32 else state for state in device], [
        state.view(torch.int32) if state.dtype == torch.float32 else state for state in host
    ]


@pytest.fixture
def indices(arena):
    return arena.slots(5, SLOTS), arena.slots(5, HOST_SLOTS)


def test_all_layers_to_the_host(arena, vendor, states, indices):
    expected = [state.clone() for state in states[1]]
    for copy, device in zip(expected, states[0], strict=True):
        for one, other in zip(*(side.tolist() for side in indices), strict=True):
            copy[other, :, 0] = device[:, one]
    getattr(vendor, D2H)(*states, *indices)
    assert all(torch.equal(state, copy) for state, copy in zip(states[1], expected, strict=True))
    assert arena.calls == [f"ascend.{D2H}"]


@pytest.mark.parametrize("layer", range(LAYERS))
def test_one_layer_to_the_device(vendor, states, indices, layer):
    host, device = states[1][0], states[0][0]
    expected = device.clone()
    for one, other in zip(indices[1].tolist(), indices[0].tolist(), strict=True):
        expected[layer, other] = host[one, layer, 0]
    getattr(vendor, H2D)(host, device[layer], indices[1], indices[0], layer)
    assert torch.equal(device, expected)


def test_no_index_is_no_copy(vendor, states):
    getattr(vendor, D2H)(*states, torch.arange(0), torch.arange(0))
    getattr(vendor, H2D)(states[1][0], states[0][0][0], torch.arange(0), torch.arange(0), 0)


@pytest.fixture
def backup(vendor, states):
    before = [state.clone() for state in states[1]]

    def call(device=states[0], host=states[1], slots=FIRST, **keywords):
        try:
            getattr(vendor, D2H)(device, host, *slots, **keywords)
        finally:
            assert all(torch.equal(state, copy) for state, copy in zip(states[1], before, strict=True))

    return call


def test_components_must_pair(backup, states):
    with pytest.raises(BadCall, match="2 device and 1 host components"):
        backup(host=states[1][:1])


def test_no_components(backup):
    with pytest.raises(BadCall, match="0 device and 0 host components"):
        backup(device=[], host=[])


def test_layers_must_agree(backup, states):
    with pytest.raises(BadCall, match=r"host \(slots, 2, 1, …\) of the same rows"):
        backup(device=[state[:2] for state in states[0]])


def test_components_of_other_layer_counts(backup, states):
    with pytest.raises(BadCall, match="component 1: device state of shape"):
        backup(device=[states[0][0], states[0][1][:1]])


def test_dtypes_must_agree(backup, states):
    with pytest.raises(BadCall, match=r"component 0: device layer .* torch\.float32, host"):
        backup(device=[states[0][0].view(torch.float32), states[0][1]])


def test_slots_must_be_dense(backup, states):
    wide = torch.zeros(LAYERS, SLOTS, 4, 6, dtype=torch.int32)[..., :3]
    with pytest.raises(BadCall, match="expected slots that are dense on both sides"):
        backup(device=[wide, states[0][1]])


def test_payload_must_be_dense(backup, states):
    overlapping = states[0][0].as_strided((LAYERS, SLOTS, 4, 3), (SLOTS * 12, 12, 2, 1))
    with pytest.raises(BadCall, match="expected slots that are dense on both sides"):
        backup(device=[overlapping, states[0][1]])


def test_host_must_be_contiguous(backup, states):
    wide = torch.zeros(HOST_SLOTS, LAYERS, 1, 4, 6, dtype=torch.int32)[..., :3]
    with pytest.raises(BadCall, match="expected slots that are dense on both sides"):
        backup(host=[wide, states[1][1]])


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ((torch.tensor([0, 1, SLOTS]), torch.arange(3)), f"device layer 0: slot {SLOTS} of {SLOTS}"),
        ((torch.arange(3), torch.tensor([0, 1, HOST_SLOTS])), f"host layer 0: slot {HOST_SLOTS} of {HOST_SLOTS}"),
        ((torch.tensor([0, 1, -1]), torch.arange(3)), "device_indices: index -1"),
        ((torch.arange(3), torch.tensor([0, 1, -1])), "host_indices: index -1"),
    ],
)
def test_slot_out_of_range(backup, slots, message):
    with pytest.raises(OutOfRegion, match=message):
        backup(slots=slots)


def test_slot_twice(backup):
    with pytest.raises(BadCall, match="written to the same bytes"):
        backup(slots=(torch.arange(3), torch.tensor([0, 1, 1])))


def test_indices_must_pair(backup):
    with pytest.raises(BadCall, match="3 source and 2 destination indices"):
        backup(slots=(torch.arange(3), torch.arange(2)))


def test_flag_is_an_enum(backup):
    with pytest.raises(BadCall, match=r"flags is 2; expected TransferFlag\.FAST2D"):
        backup(flags=2)


def test_empty_component(backup, states):
    with pytest.raises(BadCall, match="component 1 is empty"):
        backup(device=[states[0][0], torch.empty(LAYERS, 0, 5, dtype=torch.int16)])


def test_sides_swapped(arena, backup, states):
    there = arena.buffer(HOST_SLOTS, LAYERS, 1, 5, dtype=torch.int16, kind="device")
    with pytest.raises(WrongDevice, match="component 1: the host state lies on the device"):
        backup(host=[states[1][0], there])


@pytest.mark.parametrize("layer", [-1, LAYERS])
def test_layer_out_of_range(vendor, states, layer):
    with pytest.raises(OutOfRegion, match=f"layer_id is {layer}"):
        getattr(vendor, H2D)(states[1][0], states[0][0][0], torch.arange(2), torch.arange(2), layer)
