"""What suites share: rows that carry their origin, the model of a transfer, comparison and its messages."""
