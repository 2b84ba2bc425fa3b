"""The host pool against a plain model of slot -> bytes, in every layout, over any sequence of calls."""

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from reference import LAYOUTS, PoolGeometry, transfer
from reference.device_pool import MLATokenToKVPool, NPUMLATokenToKVPool
from reference.host_pool import MLATokenToKVPoolHost

PAGE = 4
IO_BACKENDS = {
    "layer_first": ("kernel", "direct"),
    "page_first": ("kernel",),
    "page_first_direct": ("direct",),
    "page_first_kv_split": ("kernel_ascend",),
    "page_unified": ("page_unified",),
}


def geometry(draw_from):
    """A small pool: pages of 4, 4 device pages and padding, up to 5 layers."""
    drafts, indexer = draw_from.draw(st.integers(0, 2)), draw_from.draw(st.booleans())
    subset = draw_from.draw(st.sampled_from([None, (0,), (1,), (0, 1)])) if indexer else None
    return PoolGeometry(
        layers=2,
        drafts=drafts,
        kv_lora_rank=24,
        qk_rope_head_dim=8,
        index_head_dim=16 if indexer else None,
        indexer_layers=subset,
        index_scale=indexer,
        page_size=PAGE,
        device_tokens=16,
        host_ratio=1.0,
        dtype=draw_from.draw(st.sampled_from(["bf16", "fp8_e5m2", "fp32"])),
    )


def tokens(pages):
    return (torch.tensor(pages, dtype=torch.int64)[:, None] * PAGE + torch.arange(PAGE)).reshape(-1)


class HostPoolMachine(RuleBasedStateMachine):
    layout = ""
    allocated = Bundle("allocated")

    @initialize(data=st.data(), jit=st.booleans())
    def build(self, data, jit):
        g = geometry(data)
        kind = NPUMLATokenToKVPool if self.layout == "page_first_kv_split" else MLATokenToKVPool
        self.drafts = [kind(g.draft) for _ in range(g.drafts)]
        self.pool, self.geometry = kind(g), g
        platform = "ascend" if kind is NPUMLATokenToKVPool else "cuda"
        self.host = MLATokenToKVPoolHost(
            self.pool, self.layout, platform=platform, draft_device_pools=self.drafts, jit=jit
        )
        self.peer = MLATokenToKVPoolHost(
            self.pool, self.layout, platform=platform, draft_device_pools=self.drafts, jit=jit
        )
        parts = self.host.host_layout.components
        self.planes = [(c.name, layer) for c in parts for layer in c.layers]
        widths = {c.name: c.row_bytes for c in parts}
        self.device = {at: torch.zeros(g.device_slots, widths[at[0]], dtype=torch.uint8) for at in self.planes}
        self.stored = {at: torch.zeros(g.host_slots, widths[at[0]], dtype=torch.uint8) for at in self.planes}
        self.used = set()

    def device_plane(self, component, layer):
        own = self.geometry.layers
        return self.pool.plane(component, layer) if layer < own else self.drafts[layer - own].plane(component, 0)

    @rule(target=allocated, pages=st.integers(1, 3))
    def alloc(self, pages):
        free = self.geometry.host_pages - len(self.used)
        found = self.host.alloc(pages * PAGE)
        assert (found is None) is (pages > free)
        if found is None:
            return ()
        numbers = tuple((found[::PAGE] // PAGE).tolist())
        assert found.equal(tokens(numbers))
        assert not self.used & set(numbers)
        self.used |= set(numbers)
        return numbers

    @rule(pages=consumes(allocated))
    def free(self, pages):
        assert self.host.free(tokens(pages)) == len(pages) * PAGE
        self.used -= set(pages)

    @precondition(lambda self: len(self.used) < self.geometry.host_pages)
    @rule(data=st.data())
    def free_what_is_free(self, data):
        page = data.draw(st.sampled_from(sorted(set(range(self.geometry.host_pages)) - self.used)))
        with pytest.raises(ValueError, match="double free"):
            self.host.free(tokens([page]))

    @rule(seed=st.integers(0, 2**32 - 1))
    def write_device(self, seed):
        noise = torch.Generator().manual_seed(seed)
        for at, rows in self.device.items():
            rows.random_(0, 256, generator=noise)
            self.device_plane(*at).copy_(rows)

    @rule(pages=allocated, data=st.data())
    def backup(self, pages, data):
        source = self.device_pages(pages, data)
        self.move_out(tokens(pages), tokens(source), data.draw(st.sampled_from(IO_BACKENDS[self.layout])))
        for at in self.planes:
            self.stored[at][tokens(pages)] = self.device[at][tokens(source)]

    @rule(pages=allocated, data=st.data())
    def load(self, pages, data):
        to = self.device_pages(pages, data)
        layers = data.draw(st.permutations(range(self.geometry.total_layers)))
        for layer in layers[: data.draw(st.integers(1, len(layers)))]:
            self.move_in(tokens(pages), tokens(to), layer, data.draw(st.sampled_from(IO_BACKENDS[self.layout])))
            for at in self.planes:
                if at[1] == layer:
                    self.device[at][tokens(to)] = self.stored[at][tokens(pages)]

    def device_pages(self, pages, data):
        return data.draw(st.permutations(range(self.geometry.device_pages)))[: len(pages)]

    def move_out(self, host, device, io_backend):
        if self.layout != "page_unified":
            self.host.backup_from_device_all_layer(host, device, io_backend)
        elif len(host):
            layers = [layer for pool in (self.pool, *self.drafts) for layer in pool.kv_buffer]
            pages = device[::PAGE] // PAGE, host[::PAGE] // PAGE
            transfer.unified_write_back(layers, self.host.tensor("latent"), *pages, PAGE)

    def move_in(self, host, device, layer, io_backend):
        draft = layer - self.geometry.layers
        if self.layout != "page_unified":
            self.host.load_to_device_per_layer(host, device, layer, io_backend, is_draft=draft >= 0)
        else:
            to = self.pool.kv_buffer[layer] if draft < 0 else self.drafts[draft].kv_buffer[0]
            transfer.unified_load(self.host.tensor("latent"), to, host, device, layer)

    @rule(pages=allocated, data=st.data())
    def export_and_import(self, pages, data):
        for page in pages:
            to = data.draw(st.integers(0, self.geometry.host_pages - 1))
            self.peer.set_from_flat_data_page(to * PAGE, self.host.get_data_page(page * PAGE))
            self.host.set_from_flat_data_page(page * PAGE, self.host.get_dummy_flat_data_page())
            self.host.set_from_flat_data_page(page * PAGE, self.peer.get_data_page(to * PAGE))

    @rule(pages=allocated)
    def evict(self, pages):
        for page in pages:
            self.host.set_from_flat_data_page(page * PAGE, self.host.get_dummy_flat_data_page())
        for rows in self.stored.values():
            rows[tokens(pages)] = 0

    @invariant()
    def pools_hold_what_the_model_says(self):
        for at in self.planes:
            rows = self.host.host_layout.rows(self.host.buffers[at[0]], *at)
            assert rows.reshape(self.stored[at].shape).equal(self.stored[at]), f"host {at}"
            assert self.device_plane(*at).equal(self.device[at]), f"device {at}"

    @invariant()
    def slots_are_counted(self):
        assert self.host.available_size() == (self.geometry.host_pages - len(self.used)) * PAGE


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_sequence_of_calls(name):
    machine = type(f"Machine_{name}", (HostPoolMachine,), {"layout": name})
    quick = settings(
        max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    machine.TestCase.settings = quick
    case = machine.TestCase("runTest")
    case.runTest()
