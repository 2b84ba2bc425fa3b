import pytest

from harness.sut.mutation import OPERATORS, Mutant, mutants_of, mutate_source

POOL = """
class Pool:
    def load(self, layer_id):
        if self.has_draft and layer_id > 0:
            copy(src=self.kv[layer_id], dst=out[layer_id], src_indices=host, dst_indices=device, layer_id=layer_id)
        self.nbytes = self.rows * self.dtype.itemsize
        self.page_num = self.size // self.page_size + 1
        exchange(device_index_k=a, host_index_k=b, dst_layers=self.data_ptrs)


def fuse(routed, shared, routed_scaling_factor):
    from vendor import kernel

    routed.mul_(routed_scaling_factor)
    return routed
"""


def variants(operator):
    found = [m for m in mutants_of(POOL, "pool.py") if m.operator == operator]
    return [mutate_source(POOL, mutant) for mutant in found]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_finds_a_place(operator):
    assert variants(operator)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_variant_differs_and_compiles(operator):
    for source in variants(operator):
        compile(source, "pool.py", "exec")
        assert source != POOL


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("swap-operands", "src_indices=device, dst_indices=host"),
        ("swap-operands", "src=out[layer_id], dst=self.kv[layer_id]"),
        ("forget-argument", "layer_id=0"),
        ("forget-argument", "device_index_k=None"),
        ("shift-layer", "self.kv[(layer_id) - 1]"),
        ("element-for-byte-size", "self.nbytes = self.rows\n"),
        ("wrong-stride", "self.size // self.page_num + 1"),
        ("wrong-pointer-table", "dst_layers=device_data_ptrs"),
        ("skip-last-page", "src_indices=(host)[: -self.page_size]"),
        ("index-dtype", "src_indices=(host).to(torch.int16)"),
        ("off-by-one", "// self.page_size + 0"),
        ("negate-condition", "if not (self.has_draft and layer_id > 0):"),
        ("drop-guard", "if (self.has_draft):"),
        ("return-other", "return shared"),
        ("scaling-factor", "routed.mul_(1.0)"),
        ("scaling-factor", "routed.mul_((routed_scaling_factor * routed_scaling_factor))"),
        ("drop-statement", "from vendor import kernel\n\n    pass"),
        ("hoist-import", "\nfrom vendor import kernel\nclass Pool"),
    ],
)
def test_operator_makes_the_slip_it_is_named_after(operator, wrong):
    assert any(wrong in source for source in variants(operator))


def test_a_mutant_that_does_not_apply_is_none():
    assert mutate_source(POOL, Mutant("return-other", "pool.py", "fuse", 7)) is None


def test_names_are_unique():
    names = [m.name for m in mutants_of(POOL, "pool.py")]
    assert len(names) == len(set(names))
