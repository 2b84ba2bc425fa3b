import reference


def test_where_is_a_row(geometry):
    g = geometry(page_size=16, device_tokens=64, index_head_dim=16, indexer_layers=(0, 2))
    place = reference.where("page_first_kv_split", g, layer=2, slot=37, component="index_k")
    assert (place.at, place.shape, place.row_bytes) == ((2, 1, 5, 0), (9, 2, 16, 1, 16), 32)
    assert place.offset == ((2 * 2 + 1) * 16 + 5) * 32


def test_where_reads_well(geometry):
    assert str(reference.where("layer_first", geometry(), layer=2, slot=1)) == (
        "latent[2, 1, 0] of (3, 36, 1, 32): bytes 4672..4736"
    )
