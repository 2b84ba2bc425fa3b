import pytest

from reference import IO_BACKENDS, LAYOUTS, Refused, Works, decide

MLA = {("layer_first", "kernel"), ("page_first", "kernel"), ("layer_first", "direct"), ("page_first_direct", "direct")}
WORKS = {"cuda": MLA, "rocm": MLA, "xpu": MLA, "ascend": {("page_first_kv_split", "kernel_ascend")}, "cpu": set()}


@pytest.mark.parametrize("platform", WORKS)
def test_what_works_for_mla(platform):
    pairs = {(at, io) for at in LAYOUTS for io in IO_BACKENDS if isinstance(decide(platform, at, io), Works)}
    assert pairs == WORKS[platform]


def test_xpu_works_since_a_release():
    assert decide("xpu", "layer_first", "kernel") == Works("0.5.21")


@pytest.mark.parametrize(
    ("layout", "io_backend", "text"),
    [
        ("page_head", "kernel", "Unsupported layout: page_head"),
        ("page_first", "warp", "Unsupported IO backend: warp"),
        ("page_first", "direct", "Unsupported layout: page_first cannot"),
        ("page_first_kv_split", "kernel_ascend", "Unsupported IO backend: kernel_ascend does not serve the mla pool"),
    ],
)
def test_a_refusal_names_what_it_refuses(layout, io_backend, text):
    answer = decide("cuda", layout, io_backend)
    assert isinstance(answer, Refused)
    assert answer.error is ValueError
    assert answer.why.startswith(text)


def test_ascend_moves_mha_page_first_direct():
    assert isinstance(decide("ascend", "page_first_direct", "kernel_ascend", pool="mha"), Works)


def test_the_indexer_pool_has_no_ascend_backend():
    assert isinstance(decide("ascend", "page_first", "kernel_ascend", pool="dsa_indexer"), Refused)


@pytest.mark.parametrize("unknown", [("tpu", "mla"), ("cuda", "gqa")])
def test_an_unknown_platform_or_pool_is_an_error(unknown):
    with pytest.raises(ValueError, match="is not known; expected one of"):
        decide(unknown[0], "layer_first", "kernel", pool=unknown[1])
