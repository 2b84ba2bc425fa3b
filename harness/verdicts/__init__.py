"""What a run says: outcomes, expectations, exit codes, and the comparison of two runs."""
