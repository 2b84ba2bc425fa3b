"""Poolparity: how SGLang is checked. See docs/architecture.md for the rooms of this package."""

__version__ = "0.1.0"
