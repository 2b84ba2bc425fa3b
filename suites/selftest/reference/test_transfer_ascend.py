import pytest
import torch

from reference.transfer import Exchange, TransferDirection, dim_exchange

PAGE = 4


@pytest.fixture
def part(filled):
    """A component: 5 device pages, 6 host pages."""

    def build(name="k", layers=3, dim=8, host_layers=None, dtype=torch.bfloat16, heads=(1,)):
        device = filled(torch.zeros(layers, 5, PAGE, *heads, dim, dtype=dtype))
        host = filled(torch.zeros(6, host_layers or layers, PAGE, 1, dim, dtype=dtype))
        return Exchange(name, device, host)

    return build


def as_bytes(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def test_d2h_turns_the_first_two_dimensions(part, slots):
    k = part()
    expected = k.host.clone()
    for layer in range(3):
        expected[5, layer], expected[0, layer] = k.device[layer, 2], k.device[layer, 4]
    dim_exchange([k], slots(2, 4), slots(5, 0), PAGE, TransferDirection.D2H)
    assert as_bytes(k.host).equal(as_bytes(expected))


def test_h2d_turns_them_back(part, slots):
    k = part()
    expected = k.device.clone()
    for layer in range(3):
        expected[layer, 2], expected[layer, 4] = k.host[5, layer], k.host[0, layer]
    dim_exchange([k], slots(2, 4), slots(5, 0), PAGE, TransferDirection.H2D)
    assert as_bytes(k.device).equal(as_bytes(expected))


def test_every_component_moves_with_its_own_width_and_layers(part, slots):
    parts = [part(), part("v", dim=4), part("index_k", layers=2), part("scale", 2, 1, dtype=torch.float32, heads=())]
    dim_exchange(parts, slots(3), slots(1), PAGE, TransferDirection.D2H)
    for p in parts:
        assert as_bytes(p.host[1]).equal(as_bytes(p.device[:, 3]))


def test_a_slice_of_the_host_layers_is_fine(part, slots):
    k = part(layers=1, host_layers=3)
    draft, others = Exchange("k", k.device, k.host[:, 2:3]), k.host[:, :2].clone()
    dim_exchange([draft], slots(3), slots(1), PAGE, TransferDirection.D2H)
    assert as_bytes(k.host[1, 2]).equal(as_bytes(k.device[0, 3]))
    assert as_bytes(k.host[:, :2]).equal(as_bytes(others))


BAD = [
    ({"host_layers": 5}, "k: host layers=5 must be 3"),
    ({"heads": (2,)}, "k: host row="),
    ({"heads": (1, 1)}, "k: device dimensions=6 must be 5"),
]


@pytest.mark.parametrize(("fields", "text"), BAD)
def test_what_does_not_mirror_is_refused(part, slots, fields, text):
    with pytest.raises(ValueError, match=text):
        dim_exchange([part(**fields)], slots(1), slots(1), PAGE, TransferDirection.D2H)


def test_another_dtype_is_refused(part, slots):
    k = part()
    with pytest.raises(ValueError, match=r"k: host dtype=torch.float16 must be torch.bfloat16"):
        dim_exchange(
            [Exchange("k", k.device, k.host.view(torch.float16))], slots(1), slots(1), PAGE, TransferDirection.D2H
        )


def test_a_device_tensor_with_gaps_is_refused(part, slots):
    wide = part(dim=16)
    half = Exchange("k", wide.device[..., :8], wide.host[..., :8])
    with pytest.raises(ValueError, match="k: device contiguous=False must be True"):
        dim_exchange([half], slots(1), slots(1), PAGE, TransferDirection.D2H)


def test_a_host_page_with_gaps_is_refused(part, slots):
    wide = part(dim=16)
    half = Exchange("k", wide.device[..., :8].contiguous(), wide.host[..., :8])
    with pytest.raises(ValueError, match="k: host page contiguous=False must be True"):
        dim_exchange([half], slots(1), slots(1), PAGE, TransferDirection.D2H)


@pytest.mark.parametrize("direction", TransferDirection)
def test_bad_indices_are_refused_and_nothing_is_written(part, slots, direction):
    k = part()
    before = as_bytes(k.host).clone(), as_bytes(k.device).clone()
    for device, host in [(slots(5), slots(0)), (slots(1), slots(6)), (slots(1), slots(1) + 1), (slots(1, 2), slots(1))]:
        with pytest.raises((ValueError, IndexError), match="_indices"):
            dim_exchange([k], device, host, PAGE, direction)
    assert as_bytes(k.host).equal(before[0])
    assert as_bytes(k.device).equal(before[1])


def test_a_destination_named_twice_is_refused_in_either_direction(part, slots):
    with pytest.raises(ValueError, match="host_indices names slot 4 more than once"):
        dim_exchange([part()], slots(1, 2), slots(1, 1), PAGE, TransferDirection.D2H)
    with pytest.raises(ValueError, match="device_indices names slot 4 more than once"):
        dim_exchange([part()], slots(1, 1), slots(1, 2), PAGE, TransferDirection.H2D)


def test_another_page_size_is_refused(part, slots):
    with pytest.raises(ValueError, match="k: page size=4 must be 2"):
        dim_exchange([part()], slots(1), slots(1), 2, TransferDirection.D2H)


def test_an_exchange_of_nothing_is_refused(slots):
    with pytest.raises(ValueError, match="number of components=0"):
        dim_exchange([], slots(1), slots(1), PAGE, TransferDirection.D2H)
