"""The ten transfers of `sgl_kernel.kvcacheio` that run as a kernel, between layer-first, page-first and page-head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from harness.emulation.doubles.operands import Call, refuse
from harness.emulation.doubles.rows import Addressing, Copy, Rows, Slots, move
from harness.emulation.doubles.signature import Arguments
from harness.emulation.memory import Region
from harness.errors import BadCall

_WORD: Final = 8  # the kernels copy 64-bit words
_THREADS: Final = 1024  # the most that one block (work-group) may have


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """The two launch parameters at the end of every kernel's list, and what a build makes of them."""

    block_quota: int
    group_name: str
    groups: int
    lanes: int
    automatic_quota: bool = False  # block_quota 0 means "choose"

    @property
    def defaults(self) -> dict[str, int]:
        """Default values of the launch parameters, in order."""
        return {"block_quota": self.block_quota, self.group_name: self.groups}

    def check(self, call: Call, arguments: Arguments, count: int) -> None:
        """Refuse what the launcher cannot launch; with no index it divides by zero and kills the process."""
        if not (self.automatic_quota and arguments["block_quota"] == 0):
            call.positive(block_quota=arguments["block_quota"])
        groups = arguments[self.group_name]
        call.positive(**{self.group_name: groups})
        if groups * self.lanes > _THREADS:
            found = f"{self.group_name} is {groups}, {groups * self.lanes} threads a block"
            refuse(BadCall, call.name, found, f"at most {_THREADS} threads", "lower it")
        if count == 0:
            remedy = "the launcher divides by the number of indices; skip the call when there is nothing to move"
            refuse(BadCall, call.name, "the index list is empty", "at least one index", remedy)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What distinguishes one kernel: how each side is addressed.

    `flat`: rows of one layer, packed. `table`: a pointer to such rows for each layer. `page_first`: all layers of a
    token, then the next token. `page_head`: (page, head, token, layer, head_dim).
    """

    parameters: str
    source: str
    destination: str

    @property
    def components(self) -> tuple[str, ...]:
        """Suffixes of the operands: K and V, or the one latent row of MLA."""
        return ("_k", "_v") if self.parameters.startswith("src_k") else ("",)


_KV = "src_k dst_k src_v dst_v src_indices dst_indices "
_KV_TABLES = "src_k_layers dst_k_layers src_v_layers dst_v_layers src_indices dst_indices "
_KV_FROM_TABLE = "src_k_layers dst_k src_v_layers dst_v src_indices dst_indices "
_MLA = "src dst src_indices dst_indices "

KERNELS: Final = {
    "transfer_kv_per_layer": Kernel(_KV + "item_size", "flat", "flat"),
    "transfer_kv_per_layer_pf_lf": Kernel(_KV + "layer_id item_size src_layout_dim", "page_first", "flat"),
    "transfer_kv_per_layer_ph_lf": Kernel(
        _KV + "layer_id item_size src_layout_dim page_size head_num", "page_head", "flat"
    ),
    "transfer_kv_all_layer": Kernel(_KV_TABLES + "item_size num_layers", "table", "table"),
    "transfer_kv_all_layer_lf_pf": Kernel(
        _KV_FROM_TABLE + "item_size dst_layout_dim num_layers", "table", "page_first"
    ),
    "transfer_kv_all_layer_lf_ph": Kernel(
        _KV_FROM_TABLE + "item_size dst_layout_dim num_layers page_size head_num", "table", "page_head"
    ),
    "transfer_kv_per_layer_mla": Kernel(_MLA + "item_size", "flat", "flat"),
    "transfer_kv_per_layer_mla_pf_lf": Kernel(_MLA + "layer_id item_size src_layout_dim", "page_first", "flat"),
    "transfer_kv_all_layer_mla": Kernel(
        "src_layers dst_layers src_indices dst_indices item_size num_layers", "table", "table"
    ),
    "transfer_kv_all_layer_mla_lf_pf": Kernel(
        "src_layers dst src_indices dst_indices item_size dst_layout_dim num_layers", "table", "page_first"
    ),
}


def transfer(kernel: Kernel, limits: LaunchLimits) -> Callable[[Call, Arguments], None]:
    """Return the body of one kernel's double."""

    def body(call: Call, arguments: Arguments) -> None:
        source = call.indices(arguments["src_indices"], "src_indices", place="device")
        destination = call.indices(arguments["dst_indices"], "dst_indices", place="device")
        call.pair(source, destination)
        limits.check(call, arguments, source.size)
        # Some builds skip pairs with a negative index, others address memory before the buffer with it.
        call.not_negative(source, "src_indices")
        call.not_negative(destination, "dst_indices")
        geometry = _Geometry(call, arguments)
        reader = _Side(call, arguments, geometry, "src", kernel.source, source)
        writer = _Side(call, arguments, geometry, "dst", kernel.destination, destination)
        move(
            call.name,
            [
                Copy(one, other, geometry.part_bytes)
                for component in kernel.components
                for one, other in zip(reader.rows(component), writer.rows(component), strict=True)
            ],
        )

    return body


class _Geometry:
    """The sizes of a call. A part is what is contiguous on both sides: a row, or one head of it."""

    def __init__(self, call: Call, arguments: Arguments) -> None:
        self.item_size: int = arguments["item_size"]
        self.heads: int = arguments.get("head_num", 1)
        self.page_size: int = arguments.get("page_size", 1)
        call.positive(item_size=self.item_size, head_num=self.heads, page_size=self.page_size)
        call.multiple("item_size", self.item_size, _WORD, "the kernel copies whole 64-bit words; pass the row in bytes")
        if self.item_size % (self.heads * _WORD):
            found = f"item_size {self.item_size} over head_num {self.heads}"
            refuse(
                BadCall, call.name, found, "heads of whole 64-bit words", "the kernel would drop the rest of each head"
            )
        self.part_bytes = self.item_size // self.heads
        self.layers = range(1)
        if "num_layers" in arguments:
            call.positive(num_layers=arguments["num_layers"])
            self.layers = range(arguments["num_layers"])
        elif "layer_id" in arguments:
            self.layers = range(arguments["layer_id"], arguments["layer_id"] + 1)
        self._check_layout_dim(call, arguments.get("src_layout_dim", arguments.get("dst_layout_dim")))

    def _check_layout_dim(self, call: Call, layout_dim: int | None) -> None:
        self.layout_dim = layout_dim or 0
        if layout_dim is None:
            return
        call.positive(layout_dim=layout_dim)
        call.multiple("layout_dim", layout_dim, self.heads * _WORD, "pass the bytes from one token to the next")
        if self.layers.start < 0 or self.layers.stop * self.item_size > layout_dim:
            found = f"layers {self.layers.start}..{self.layers.stop} of {self.item_size} bytes, layout_dim {layout_dim}"
            expected = f"layers 0..{layout_dim // self.item_size}"
            refuse(BadCall, call.name, found, expected, "the kernel would reach into the next token's rows")


class _Side:
    """One operand side of a call, for all its components."""

    def __init__(
        self, call: Call, arguments: Arguments, geometry: _Geometry, prefix: str, form: str, slots: Slots
    ) -> None:
        self._call, self._arguments, self._geometry = call, arguments, geometry
        self._prefix, self._form, self._slots = prefix, form, slots
        self._role = "source" if prefix == "src" else "destination"
        self._addressing = [self._of_head(head) for head in range(geometry.heads)]

    def rows(self, component: str) -> Iterator[Rows]:
        """Rows of every layer and head of a component, in that order."""
        operand = f"{self._prefix}{component}" + ("_layers" if self._form == "table" else "")
        role = f"{self._role}{component.replace('_', ' ')}"
        origin = self._table(operand) if self._form == "table" else self._tensor(operand)
        for layer in self._geometry.layers:
            what = f"{role} layer {layer}" if self._form != "flat" else role
            address, region = origin(layer, what)
            for addressing in self._addressing:
                yield Rows(what, region, address, addressing)

    def _table(self, operand: str) -> Callable[[int, str], tuple[int, Region]]:
        call, needed = self._call, len(self._geometry.layers)
        addresses = call.table(self._arguments[operand], operand)
        if len(addresses) < needed or (self._prefix == "src" and len(addresses) != needed):
            found = f"{operand} has {len(addresses)} pointers for num_layers={needed}"
            refuse(BadCall, call.name, found, "one pointer a layer", "build the table from the buffers that take part")

        def origin(layer: int, what: str) -> tuple[int, Region]:
            self._check_alignment(addresses[layer], what)
            return addresses[layer], call.memory.resolve(addresses[layer], what=f"{call.name}: {what}")

        return origin

    def _tensor(self, operand: str) -> Callable[[int, str], tuple[int, Region]]:
        tensor = self._call.tensor(self._arguments[operand], operand)
        base = tensor.data_ptr()
        self._check_alignment(base, operand)
        region = self._call.region(tensor, operand)
        step = self._geometry.part_bytes if self._form != "flat" else 0
        return lambda layer, _what: (base + layer * step, region)

    def _check_alignment(self, address: int, what: str) -> None:
        self._call.multiple(f"{what}: the address", address, _WORD, "the kernel reads 64-bit words")

    def _of_head(self, head: int) -> Addressing:
        slots, geometry = self._slots, self._geometry
        if self._form in {"flat", "table"}:
            offsets = slots * geometry.item_size + head * geometry.part_bytes
        elif self._form == "page_first":
            offsets = slots * geometry.layout_dim
        else:
            pages, tokens = slots // geometry.page_size, slots % geometry.page_size
            plane = geometry.layout_dim // geometry.heads  # bytes of one token of one head, all layers
            offsets = ((pages * geometry.heads + head) * geometry.page_size + tokens) * plane
        return Addressing(offsets, slots)
