"""One OpenMP thread, as in a cell: tests fork, and a fork of a process with a thread pool can wait for it forever."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
