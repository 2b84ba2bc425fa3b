"""The systematic operators: each maps one node to the wrong nodes that a slip would have put there.

An operator is a function of a libcst node that returns the replacements (none where it does not apply). It decides by
names that SGLang uses: index pairs, layer ids, sizes in bytes, the routed scaling factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst
import libcst.matchers as m

Operator = Callable[[cst.CSTNode], Sequence[cst.CSTNode]]

OPERATORS: dict[str, Operator] = {}
HOIST = "hoist-import"


def operator(name: str) -> Callable[[Operator], Operator]:
    """Register an operator under the name that reports use."""

    def register(function: Operator) -> Operator:
        OPERATORS[name] = function
        return function

    return register


_SWAPS = (
    ("src_indices", "dst_indices"),
    ("indices_src", "indices_dst"),
    ("host_indices", "device_indices"),
    ("src", "dst"),
    ("cache_src", "cache_dst"),
    ("ptr_src", "ptr_dst"),
    ("src_layers", "dst_layers"),
    ("src_ptrs", "dst_ptrs"),
    ("device_k", "host_k"),
    ("device_v", "host_v"),
    ("device_index_k", "host_index_k"),
    ("cache_dst_stride_bytes", "cache_src_stride_bytes"),
)


def _keywords(call: cst.Call) -> dict[str, int]:
    return {arg.keyword.value: i for i, arg in enumerate(call.args) if arg.keyword is not None}


def _with_value(call: cst.Call, at: int, value: cst.BaseExpression) -> cst.Call:
    args = list(call.args)
    args[at] = args[at].with_changes(value=value)
    return call.with_changes(args=args)


@operator("swap-operands")
def swap_operands(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Swap source and destination, or host and device, in a call's keywords."""
    if not isinstance(node, cst.Call):
        return []
    at, out = _keywords(node), []
    for a, b in _SWAPS:
        if a in at and b in at and not node.args[at[a]].value.deep_equals(node.args[at[b]].value):
            swapped = _with_value(node, at[a], node.args[at[b]].value)
            out.append(_with_value(swapped, at[b], node.args[at[a]].value))
    return out


_FORGOTTEN = {
    "device_index_k": "None",
    "host_index_k": "None",
    "device_index_k_scale": "None",
    "device_v": "None",
    "host_v": "None",
    "layer_id": "0",
    "draft_buffer_infos": "()",
    "mtp_draft_device_pools": "()",
}


@operator("forget-argument")
def forget_argument(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Pass nothing (or layer 0) for the indexer, its scale, the values, the drafts or the layer."""
    if not isinstance(node, cst.Call):
        return []
    wrong = {name: cst.parse_expression(text) for name, text in _FORGOTTEN.items()}
    return [
        _with_value(node, i, wrong[name])
        for name, i in _keywords(node).items()
        if name in wrong and not node.args[i].value.deep_equals(wrong[name])
    ]


_LAYER_NAMES = ("host_layer_id", "device_layer_id", "layer_id", "draft_layer_id", "local_layer_id")


@operator("shift-layer")
def shift_layer(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Index with the layer before."""
    if not isinstance(node, cst.Index) or not m.matches(node.value, m.Name() | m.BinaryOperation(left=m.Name())):
        return []
    name = node.value.value if isinstance(node.value, cst.Name) else cst.Module([]).code_for_node(node.value)
    if not any(part in _LAYER_NAMES for part in name.replace("-", " ").split()):
        return []
    return [node.with_changes(value=cst.parse_expression(f"({name}) - 1"))]


@operator("element-for-byte-size")
def element_for_byte_size(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Forget the factor itemsize: a size in elements where bytes are meant."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
        return []
    size = m.Attribute(attr=m.Name("itemsize")) | m.Name("itemsize")
    if m.matches(node.right, size):
        return [node.left]
    return [node.right] if m.matches(node.left, size) else []


_STRIDES = (("token_stride_size", "layout_dim"), ("page_size", "page_num"), ("layer_num", "target_layer_num"))


@operator("wrong-stride")
def wrong_stride(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Use the pool's other stride or count: token for layout, page size for page count, target for all layers."""
    if not isinstance(node, cst.Attribute) or not m.matches(node.value, m.Name("self")):
        return []
    pairs = (*_STRIDES, *((b, a) for a, b in _STRIDES))
    return [node.with_changes(attr=cst.Name(b)) for a, b in pairs if node.attr.value == a]


_TABLES = {"device_data_ptrs": "self.data_ptrs", "device_kv_buffers": "self.data_refs"}


@operator("wrong-pointer-table")
def wrong_pointer_table(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Pass the other side's pointer table or buffer list to a kernel."""
    if not isinstance(node, cst.Arg) or node.keyword is None:
        return []
    name = _last_name(node.value)
    if name in _TABLES:
        return [node.with_changes(value=cst.parse_expression(_TABLES[name]))]
    if name == "data_ptrs" and node.keyword.value in ("ptr_dst", "dst_layers"):
        return [node.with_changes(value=cst.parse_expression("device_data_ptrs"))]
    return []


def _last_name(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


@operator("skip-last-page")
def skip_last_page(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Transfer all pages but the last."""
    if not isinstance(node, cst.Arg) or node.keyword is None or node.keyword.value not in _INDEX_NAMES:
        return []
    code = cst.Module([]).code_for_node(node.value)
    return [node.with_changes(value=cst.parse_expression(f"({code})[: -self.page_size]"))]


_INDEX_NAMES = ("src_indices", "dst_indices", "indices_src", "indices_dst", "host_indices", "device_indices")


@operator("index-dtype")
def index_dtype(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Hand indices to a kernel in a dtype that it does not read."""
    if not isinstance(node, cst.Arg) or node.keyword is None or node.keyword.value not in _INDEX_NAMES:
        return []
    code = cst.Module([]).code_for_node(node.value)
    return [node.with_changes(value=cst.parse_expression(f"({code}).to(torch.int16)"))]


@operator("off-by-one")
def off_by_one(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Drop or double a `+ 1` or `- 1`."""
    if not isinstance(node, cst.BinaryOperation) or not m.matches(node.right, m.Integer("1")):
        return []
    if not isinstance(node.operator, cst.Add | cst.Subtract):
        return []
    return [node.with_changes(right=cst.Integer("0"))]


@operator("negate-condition")
def negate_condition(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Take the other branch of an if statement or expression."""
    if not isinstance(node, cst.If | cst.IfExp):
        return []
    code = cst.Module([]).code_for_node(node.test)
    return [node.with_changes(test=cst.parse_expression(f"not ({code})"))]


@operator("drop-guard")
def drop_guard(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Drop one side of an `and` or `or`: the guard that a platform, a draft or an indexer needs."""
    if not isinstance(node, cst.BooleanOperation):
        return []
    return [side.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) for side in (node.left, node.right)]


@operator("return-other")
def return_other(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Return the other of the two tensors of the fusion step."""
    other = {"routed": "shared", "shared": "routed"}
    if isinstance(node, cst.Return) and isinstance(node.value, cst.Name) and node.value.value in other:
        return [node.with_changes(value=cst.Name(other[node.value.value]))]
    return []


@operator("scaling-factor")
def scaling_factor(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Drop or double the routed scaling factor."""
    factor = m.Name("routed_scaling_factor") | m.Attribute(attr=m.Name("routed_scaling_factor"))
    if not isinstance(node, cst.Arg | cst.IfExp | cst.BinaryOperation):
        return []
    out: list[cst.CSTNode] = []
    for field in _value_fields(node):
        value = getattr(node, field)
        if m.matches(value, factor):
            code = cst.Module([]).code_for_node(value)
            wrong = (cst.parse_expression("1.0"), cst.parse_expression(f"({code} * {code})"))
            out += [node.with_changes(**{field: w}) for w in wrong]
    return out


def _value_fields(node: cst.CSTNode) -> Iterator[str]:
    yield from {cst.Arg: ("value",), cst.IfExp: ("body", "orelse"), cst.BinaryOperation: ("left", "right")}[type(node)]


@operator("drop-statement")
def drop_statement(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Drop a call, an assignment to an attribute or an augmented assignment."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return []
    statement = m.Expr(m.Call()) | m.AugAssign() | m.Assign(targets=[m.AssignTarget(m.Attribute() | m.Subscript())])
    return [node.with_changes(body=[cst.Pass()])] if m.matches(node.body[0], statement) else []


@operator(HOIST)
def hoist_import(node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Import at the top of the module what a function imports when it needs it (`mutate_source` puts it there)."""
    lazy = m.SimpleStatementLine(body=[m.ImportFrom() | m.Import()])
    return [node.with_changes(body=[cst.Pass()])] if m.matches(node, lazy) else []
