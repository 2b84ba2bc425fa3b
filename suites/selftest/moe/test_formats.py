"""Weight formats on known numbers, and the mistakes that the format suite names."""

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from harness.checks.meter import Meter
from harness.checks.moe_format_ports import ReferenceFormats
from harness.checks.moe_formats import CHECKS
from reference.moe.formats import fp8, ggml, int8, mxfp4


def check(name, formats):
    meter = Meter()
    CHECKS[name](formats, torch.Generator().manual_seed(5), meter)
    return meter.bytes


@pytest.mark.parametrize("name", CHECKS)
def test_reference_passes(name):
    assert check(name, ReferenceFormats()) > 0


class Wrong(ReferenceFormats):
    """One wrong conversion at a time."""


def with_method(**methods):
    return type("Planted", (Wrong,), {name: staticmethod(method) for name, method in methods.items()})()


def coarse(values):
    """The nearest codes under scales that are twice as large as the specification's."""
    scales = mxfp4.quantize(values)[1] + 1
    step = mxfp4.e8m0(scales).repeat_interleave(mxfp4.BLOCK, -1)
    codes = (values.unsqueeze(-1) / step.unsqueeze(-1) - mxfp4.E2M1).abs().argmin(dim=-1)
    return mxfp4.pack(codes.to(torch.uint8)), scales


def swapped(packed):
    return (packed << 4) | (packed >> 4)


BUGS = {
    "nibbles swapped": (
        "mxfp4_dequantize",
        with_method(mxfp4_dequantize=lambda p, s: mxfp4.dequantize(swapped(p), s)),
        "the right ones in other places",
    ),
    "e8m0 bias off by one": (
        "mxfp4_dequantize",
        with_method(mxfp4_dequantize=lambda p, s: mxfp4.dequantize(p, s) * 2),
        "every value is 2 times the expected one",
    ),
    "halves not neighbours": (
        "mxfp4_dequantize",
        with_method(mxfp4_dequantize=lambda p, s: mxfp4.dequantize(*mxfp4.from_gguf(torch.cat([s, p], 1)))),
        "in other places",
    ),
    "scales transposed": (
        "fp8_block_dequantize",
        with_method(fp8_block_dequantize=lambda v, s: fp8.dequantize_blocks(v, s.flip(0))),
        "elements differ",
    ),
    "truncation": (
        "fp8_quantize",
        with_method(fp8_quantize=lambda v: fp8.quantize(v * 0.97, "e4m3fn")),
        "have a nearer number",
    ),
    "range not used": (
        "fp8_quantize",
        with_method(fp8_quantize=lambda v: (v.to(torch.float8_e4m3fn), torch.ones(()))),
        "expected 448",
    ),
    "scale not doubled": (
        "fp8_to_fnuz",
        with_method(fp8_to_fnuz=lambda v, s: (fp8.fn_to_fnuz(v, s)[0], s)),
        "the scale for e4m3fnuz",
    ),
    "minus zero kept": (
        "fp8_to_fnuz",
        with_method(fp8_to_fnuz=lambda v, s: (v.view(torch.float8_e4m3fnuz), s * 2)),
        "e4m3fn codes as e4m3fnuz",
    ),
    "scale twice as large": (
        "mxfp4_quantize",
        with_method(mxfp4_quantize=coarse),
        "scales are twice as large as need be",
    ),
    "rounds down": (
        "mxfp4_quantize",
        with_method(mxfp4_quantize=lambda v: mxfp4.quantize(v * 0.9)),
        "which has a nearer number",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_bug_is_named(bug):
    name, formats, text = BUGS[bug]
    with pytest.raises(AssertionError, match=text):
        check(name, formats)


def test_e2m1_values():
    assert mxfp4.E2M1.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def test_e8m0_values():
    found = mxfp4.e8m0(torch.tensor([0, 127, 128, 254, 255], dtype=torch.uint8))
    assert found[:4].tolist() == [2.0**-127, 1.0, 2.0, 2.0**127]
    assert found[4].isnan()


@settings(deadline=None)
@given(npst.arrays(np.uint8, (3, 34)))
def test_gguf_layout_round_trip(blocks):
    found = mxfp4.to_gguf(*mxfp4.from_gguf(torch.from_numpy(blocks)))
    assert np.array_equal(found.numpy(), blocks)


@settings(deadline=None)
@given(npst.arrays(np.uint8, (2, 17), elements=st.integers(0, 250)))
def test_gguf_layout_means_what_the_gguf_package_says(blocks):
    wanted = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.MXFP4)
    found = mxfp4.dequantize(*mxfp4.from_gguf(torch.from_numpy(blocks))).numpy()
    assert np.array_equal(found, wanted)


@settings(deadline=None)
@given(npst.arrays(np.float32, (2, 64), elements=st.floats(-(2.0**99), 2.0**99, width=32)))
def test_mxfp4_quantisation_is_idempotent(values):
    once = mxfp4.dequantize(*mxfp4.quantize(torch.from_numpy(values)))
    assert torch.equal(mxfp4.dequantize(*mxfp4.quantize(once)), once)


@pytest.mark.parametrize("encoding", fp8.ENCODINGS)
def test_fp8_keeps_its_own_numbers(encoding):
    codes = torch.arange(256, dtype=torch.uint8).view(fp8.ENCODINGS[encoding]).float()
    finite = codes[codes.isfinite()].reshape(1, -1)
    for quantized, scale in (fp8.quantize(finite, encoding), fp8.quantize_blocks(finite, encoding, (1, 512))):
        assert torch.equal(quantized.float() * scale.reshape(-1)[0], finite)


def test_fn_to_fnuz_refuses_nan():
    with pytest.raises(ValueError, match="expected finite weights"):
        fp8.fn_to_fnuz(torch.tensor([0x7F], dtype=torch.uint8).view(torch.float8_e4m3fn), torch.ones(1))


@settings(deadline=None)
@given(
    npst.arrays(np.int8, (3, 20), elements=st.integers(-127, 127)),
    npst.arrays(np.int8, (4, 20), elements=st.integers(-127, 127)),
)
def test_int8_matmul_is_exact(a, b):
    ones = torch.ones(3, 1), torch.ones(4, 1)
    found = int8.matmul(torch.from_numpy(a), ones[0], torch.from_numpy(b), ones[1])
    assert np.array_equal(found.numpy(), a.astype(np.int64) @ b.astype(np.int64).T)


def test_int8_rows_use_their_range():
    quantized, scales = int8.quantize_rows(torch.tensor([[1.0, -2.0], [0.0, 0.0]]))
    assert quantized.tolist() == [[64, -127], [0, 0]]
    assert scales.flatten().tolist() == pytest.approx([2 / 127, 1.0])


@pytest.mark.parametrize("name", [*ggml.MOE_VEC_TYPES, "MXFP4"])
def test_ggml_rows_have_the_size_that_gguf_says(name):
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    rows = torch.zeros(2, 3 * size, dtype=torch.uint8)
    assert ggml.row_bytes(name, 3 * block) == 3 * size
    assert ggml.dequantize(rows, name).shape == (2, 3 * block)


def test_ggml_types_are_those_of_the_kernel():
    assert sorted(ggml.MOE_VEC_TYPES.values()) == [2, 3, 6, 7, 8, *range(10, 15), *range(16, 24), 29]


def test_q8_1_rounds_half_away_from_zero_and_keeps_the_sum():
    values = torch.zeros(1, 32)
    values[0, :3] = torch.tensor([127.0, 2.5, -2.5])
    found = ggml.quantize_q8_1(values)
    assert found.values[0, :3].tolist() == [127, 3, -3]
    assert (found.d.item(), found.s.item()) == (1.0, 127.0)


def test_moe_vec_is_the_dequantised_product():
    generator = torch.Generator().manual_seed(1)
    plain = torch.randn(3, 4, 64, generator=generator)
    weights = torch.from_numpy(gguf.quants.quantize(plain.numpy(), gguf.GGMLQuantizationType.Q8_0))
    tokens, ids = torch.randn(2, 64, generator=generator), torch.tensor([[0, 2], [1, -1]])
    found = ggml.moe_vec(tokens, weights, ids, "Q8_0")
    wanted = torch.einsum("rk,rnk->rn", tokens[[0, 0, 1, 1]], plain[[0, 2, 1, 0]])
    assert found[3].tolist() == [0] * 4
    assert (found[:3] - wanted[:3]).norm() < 0.02 * wanted[:3].norm()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: mxfp4.dequantize(torch.zeros(1, 16), torch.zeros(1, 1)),
            "packed is torch.float32; expected torch.uint8",
        ),
        (lambda: mxfp4.quantize(torch.zeros(33)), "no multiple of 32"),
        (lambda: fp8.largest("e3m4"), "encoding='e3m4'; expected one of e4m3fn"),
        (lambda: fp8.dequantize_blocks(torch.zeros(4, 4), torch.ones(2, 2)), r"scales \(2, 2\) do not fit \(4, 4\)"),
        (
            lambda: int8.matmul(torch.zeros(1, 2), torch.ones(1, 1), torch.zeros(1, 2), torch.ones(1, 1)),
            "expected torch.int8",
        ),
        (lambda: ggml.row_bytes("Q8_K", 256), "type='Q8_K' is none that"),
        (lambda: ggml.row_bytes("Q4_K", 100), "no whole number of 256-element Q4_K blocks"),
    ],
)
def test_bad_input_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
