import time

import numpy as np
import pytest
import torch

from harness.emulation.doubles.rows import Addressing, Copy, Rows, move
from harness.errors import BadCall, OutOfRegion


def rows(arena, tensor, slots, stride, what="source", base=0):
    region = arena.memory.resolve(tensor.data_ptr(), what=what)
    return Rows(what, region, tensor.data_ptr() + base, Addressing.strided(np.array(slots, dtype=np.int64), stride))


def test_rows_of_any_width_and_stride_move(arena):
    source, destination = arena.buffer(100), arena.buffer(100)
    expected = destination.clone()
    for one, other in zip([4, 0, 2], [1, 3, 0], strict=True):
        expected[other * 11 + 2 : other * 11 + 9] = source[one * 7 : one * 7 + 7]
    move("t", [Copy(rows(arena, source, [4, 0, 2], 7), rows(arena, destination, [1, 3, 0], 11, base=2), 7)])
    assert torch.equal(destination, expected)


def test_overrun_names_call_operand_slot_bytes_and_region(arena):
    source, destination = arena.buffer(100, label="device layer 2"), arena.buffer(100)
    with pytest.raises(
        OutOfRegion, match=r"t: source, slot 14: bytes 98\.\.105 lie outside region 'device layer 2' \(100"
    ):
        move("t", [Copy(rows(arena, source, [0, 14], 7), rows(arena, destination, [0, 1], 7), 7)])


def test_refused_call_has_written_nothing(arena):
    source, destination = arena.buffer(100), arena.buffer(100)
    before = destination.clone()
    good = Copy(rows(arena, source, [0], 7), rows(arena, destination, [0], 7), 7)
    with pytest.raises(OutOfRegion):
        move("t", [good, Copy(rows(arena, source, [0], 7), rows(arena, destination, [99], 7), 7)])
    assert torch.equal(destination, before)


def test_last_byte_of_a_region_may_be_used(arena):
    source, destination = arena.buffer(14), arena.buffer(14)
    move("t", [Copy(rows(arena, source, [1], 7), rows(arena, destination, [1], 7), 7)])
    assert torch.equal(destination[7:], source[7:])


@pytest.mark.parametrize(("slots", "stride"), [([1, 1], 7), ([0, 1], 6)])
def test_two_writes_to_one_byte_are_refused(arena, slots, stride):
    source, destination = arena.buffer(100), arena.buffer(100)
    with pytest.raises(BadCall, match=r"destination, slot \d and destination, slot \d are written to the same bytes"):
        move("t", [Copy(rows(arena, source, [0, 1], 7), rows(arena, destination, slots, stride, "destination"), 7)])


def test_two_layers_written_to_one_place_are_refused(arena):
    source, destination = arena.buffer(100), arena.buffer(100)
    copies = [
        Copy(rows(arena, source, [0], 7, base=layer), rows(arena, destination, [3], 7, f"destination layer {layer}"), 7)
        for layer in range(2)
    ]
    with pytest.raises(BadCall, match="destination layer 0, slot 3 and destination layer 1, slot 3"):
        move("t", copies)


def test_reading_what_the_call_writes_is_refused(arena):
    buffer = arena.buffer(100)
    with pytest.raises(BadCall, match="source, slot 3 is read from bytes that the same call writes"):
        move("t", [Copy(rows(arena, buffer, [0, 3], 7), rows(arena, buffer, [4, 2], 7, "destination", base=1), 7)])


def test_interleaved_but_disjoint_rows_of_one_buffer_move(arena):
    buffer = arena.buffer(100)
    expected = buffer.clone()
    expected[10:20], expected[30:40] = buffer[0:10], buffer[20:30]
    move("t", [Copy(rows(arena, buffer, [0, 2], 10), rows(arena, buffer, [1, 3], 10), 10)])
    assert torch.equal(buffer, expected)


def test_no_rows_is_no_access(arena):
    source, destination = arena.buffer(10), arena.buffer(10)
    move("t", [Copy(rows(arena, source, [], 7), rows(arena, destination, [], 7), 7)])


def test_three_layers_of_eighty_rows_take_a_fraction_of_a_millisecond(arena):
    sources, target = arena.layers(3, 100, 1152), arena.buffer(100, 3, 1152)
    slots = arena.slots(80, 100).numpy()
    copies = [
        Copy(rows(arena, one, slots, 1152), rows(arena, target, slots, 3 * 1152, base=layer * 1152), 1152)
        for layer, one in enumerate(sources)
    ]
    taken = []
    for _ in range(20):
        start = time.perf_counter()
        move("t", copies)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.0005


def test_row_before_its_region_is_refused(arena):
    source, destination = arena.buffer(100), arena.buffer(100)
    with pytest.raises(OutOfRegion, match=r"source, slot -1: bytes -7\.\.0 lie outside"):
        move("t", [Copy(rows(arena, source, [0, -1], 7), rows(arena, destination, [0, 1], 7), 7)])
