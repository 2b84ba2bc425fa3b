import pytest

from harness.data import fixtures_dir
from reference.presets import load_preset

PRESETS = sorted((fixtures_dir() / "models").glob("*.toml"))


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_makes_a_pool(path):
    assert load_preset(path).geometry(device_tokens=4096).kv_lora_rank == 512


def preset(name):
    return load_preset(fixtures_dir() / "models" / f"{name}.toml")


def test_deepseek_v3_is_288_megabytes_at_4096_tokens():
    assert preset("deepseek-v3").geometry(device_tokens=4096).size_per_token(split=False) * 4096 == 287_834_112


def test_deepseek_v3_2_rows_are_packed():
    assert preset("deepseek-v3.2").geometry(device_tokens=4096).latent_row_bytes == 656


def test_glm_5_2_has_an_indexer_on_21_of_78_layers():
    index_k = preset("glm-5.2").geometry(device_tokens=4096).components(split=True)[2]
    assert (index_k.name, len(index_k.layers)) == ("index_k", 21)


def test_overrides_replace_fields():
    g = preset("deepseek-v3").geometry(device_tokens=256, page_size=128, drafts=1)
    assert (g.page_size, g.total_layers) == (128, 62)


def test_a_number_without_a_source_is_refused():
    with pytest.raises(ValueError, match="'X': no source for kv_lora_rank"):
        load_preset('title="X"\nmtp_layers=0\n[geometry]\nkv_lora_rank=1\n[sources]\nmtp_layers="a"')


def test_a_missing_table_is_named():
    with pytest.raises(ValueError, match="lacks sources"):
        load_preset('title="X"\nmtp_layers=0\n[geometry]\n')
