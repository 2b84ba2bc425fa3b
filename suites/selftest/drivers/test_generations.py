import pytest

from harness.errors import NoDriver
from harness.sut.drivers.generations import generation_of

# The constructors as the releases have them (docs/FACTS.md), shortened to what tells them apart.
SIGNATURES = {
    "0.5.16": "device_pool, host_to_device_ratio, host_size, page_size, layout, pin_memory=True, device='cpu', "
    "allocator_type='default', override_kv_cache_dim=None",
    "0.5.17": "device_pool, host_to_device_ratio, host_size, page_size, layout, pin_memory=True, device='cpu', "
    "allocator_type='default', override_kv_cache_dim=None, dcp_size=1, dcp_rank=0, *, pool_label='kv'",
    "0.5.18": "device_pool, host_to_device_ratio, host_size, page_size, layout, pin_memory=True, device='cpu', "
    "allocator_type='default', override_kv_cache_dim=None, mtp_draft_device_pools=(), dcp_size=1, dcp_rank=0, *, "
    "pool_label='kv'",
    "0.5.20": "device_pool, host_to_device_ratio, host_size, page_size, layout, pin_memory=True, device='cpu', "
    "allocator_type='default', override_kv_cache_dim=None, mtp_draft_device_pools=(), dcp_size=1, dcp_rank=0, *, "
    "pool_label='kv', is_dummy=False",
    "0.5.23": "buffer_info, host_to_device_ratio, host_size, page_size, layout, pin_memory=True, device='cpu', "
    "allocator_type='default', override_kv_cache_dim=None, draft_buffer_infos=(), dcp_size=1, dcp_rank=0, *, "
    "device_capacity_tokens, start_layer, end_layer, target_layer_num, layer_shard_enabled=False, pool_label='kv'",
}


def host_class(parameters):
    namespace = {}
    exec(f"class Host:\n    def __init__(self, {parameters}): ...", namespace)  # noqa: S102 - the signature is the input
    return namespace["Host"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_each_signature_has_its_generation(name):
    assert generation_of(host_class(SIGNATURES[name])).name == name


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_new_optional_parameter_is_fine(name):
    assert generation_of(host_class(f"{SIGNATURES[name]}, **new_options")).name == name


def test_a_new_required_parameter_is_not():
    with pytest.raises(NoDriver, match=r"no driver for this pool API: .*device_pool.*brand_new"):
        generation_of(host_class("device_pool, brand_new, host_to_device_ratio, host_size, page_size, layout"))


def test_an_unknown_api_names_what_it_found_and_what_is_known():
    with pytest.raises(NoDriver, match=r"__init__\(self, arena, rows\).*0\.5\.23.*add a module"):
        generation_of(host_class("arena, rows"))
