"""`python -m harness`: the same as `poolparity`."""

from harness.cli import main

if __name__ == "__main__":
    main(prog_name="poolparity")
