"""How results are shown: on a terminal, while a run goes on, and as one JSON object."""
