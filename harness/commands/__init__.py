"""What each `poolparity` command does. `harness.cli` reads the command line and calls one function from here.

A command function returns the exit code (docs/contract.md) and raises `PoolparityError` for everything that ends it
with one message. Modules here may be heavy: `harness.cli` imports them only when their command runs.
"""
