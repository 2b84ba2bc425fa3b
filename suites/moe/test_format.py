import torch

from harness.checks.moe_format_ports import formats_of
from harness.checks.moe_formats import CHECKS


def test_format(conversion, cell, meter):
    """A conversion of a weight format keeps or finds the numbers that the format's specification names."""
    generator = torch.Generator().manual_seed(cell.seed)
    CHECKS[conversion.partition("-")[2]](formats_of(cell.sut.root, cell.device), generator, meter)
