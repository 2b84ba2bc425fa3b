"""Mutants: small, described edits of a SUT tree that put a bug in.

An operator finds the places where it applies by what the code does (calls, attribute names, guards), so that one mutant
fits several releases. A tree is never edited: a mutant is a copy that shares every unchanged file with its original.
"""

from harness.sut.mutation.apply import NotApplicableError, copy_tree, write_mutant
from harness.sut.mutation.named import NamedMutant, write_named
from harness.sut.mutation.named import load as load_named
from harness.sut.mutation.operators import OPERATORS
from harness.sut.mutation.sites import Mutant, mutants_of, mutate_source

__all__ = [
    "OPERATORS",
    "Mutant",
    "NamedMutant",
    "NotApplicableError",
    "copy_tree",
    "load_named",
    "mutants_of",
    "mutate_source",
    "write_mutant",
    "write_named",
]
