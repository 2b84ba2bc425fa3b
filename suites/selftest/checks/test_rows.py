import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from harness.checks.mix import mix32, mix64, unmix32, unmix64
from harness.checks.rows import Origin, decode, encode


@given(arrays(np.uint64, 8))
def test_mix64_is_undone(words):
    assert (unmix64(mix64(words)) == words).all()


@given(arrays(np.uint32, 8))
def test_mix32_is_undone(words):
    assert (unmix32(mix32(words)) == words).all()


@pytest.mark.parametrize("width", [4, 8, 9, 13, 64, 132, 384, 656])
def test_no_two_rows_are_alike(width):
    assert len(np.unique(encode(1, "latent", 2, 500, width, "bf16"), axis=0)) == 500


@given(
    epoch=st.integers(1, 63),
    layer=st.integers(0, 63),
    slot=st.integers(0, 199),
    width=st.sampled_from([64, 132, 384, 656]),
)
def test_a_row_says_where_it_came_from(epoch, layer, slot, width):
    assert decode(encode(epoch, "index_k", layer, 200, width, "fp16")[slot]) == Origin(epoch, "index_k", layer, slot)


def test_a_narrow_row_says_where_it_came_from():
    assert decode(encode(5, "v", 7, 200, 4, "bf16")[199]) == Origin(5, "v", 7, 199)


@pytest.mark.parametrize("shift", [2, 8, 130])
def test_a_shifted_row_says_by_how_much(shift):
    assert decode(np.roll(encode(1, "k", 0, 9, 384, "bf16")[8], shift)) == Origin(1, "k", 0, 8, shift)


def test_random_bytes_have_no_origin():
    rng = np.random.default_rng(0)
    found = [decode(rng.integers(0, 256, 384, dtype=np.uint8)) for _ in range(200)]
    assert found.count(None) >= 190


@pytest.mark.parametrize(
    ("dtype", "view", "is_nan"),
    [
        ("fp16", np.float16, np.isnan),
        ("fp32", np.float32, np.isnan),
        ("fp16", np.float16, np.isinf),
        ("fp32", np.float32, np.isinf),
    ],
)
def test_rows_hold_special_values(dtype, view, is_nan):
    assert is_nan(encode(1, "latent", 0, 64, 384, dtype).view(view)).any()


def test_encoded_rows_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        encode(1, "latent", 0, 4, 64, "bf16")[0] = 0
