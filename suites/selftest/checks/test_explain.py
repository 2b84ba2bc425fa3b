import numpy as np
import pytest

from harness.checks.explain import Difference, explain
from harness.checks.rows import encode

EPOCHS = {1: "device", 2: "host before the transfer"}
DEVICE = {layer: encode(1, "latent", layer, 40, 384, "bf16") for layer in range(3)}
HOST = {layer: encode(2, "latent", layer, 40, 384, "bf16") for layer in range(3)}


def message(found, expected):
    found, expected = np.array(found)[None], np.array(expected)[None]
    return explain("after backup", [Difference("host", "latent", 2, np.array([17]), found, expected)], EPOCHS)


def flipped(row, at):
    row = row.copy()
    row[at] ^= 1
    return row


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (
            DEVICE[1][33],
            "host slot 17, layer 2 (latent) holds device slot 33, layer 1; expected device slot 33, layer 2",
        ),
        (DEVICE[2][34], "holds device slot 34, layer 2; expected device slot 33, layer 2"),
        (HOST[2][17], "host slot 17, layer 2 (latent) was not written; expected device slot 33, layer 2"),
        (np.zeros(384, np.uint8), "holds bytes of no known row"),
        (np.roll(DEVICE[2][33], 8), "holds device slot 33, layer 2 shifted by 8 bytes"),
        (flipped(DEVICE[2][33], 9), "1 wrong bytes between 9 and 9"),
    ],
)
def test_message_says_what_happened(found, says):
    assert says in message(found, DEVICE[2][33])


def test_a_row_that_nobody_named_is_called_that():
    says = "host slot 17, layer 2 (latent) was written although nothing named it: it holds device slot 3, layer 2"
    assert says in message(DEVICE[2][3], HOST[2][17])


def test_rows_and_planes_are_counted():
    assert "(1 rows differ; host latent layer 2: 1)" in message(DEVICE[1][33], DEVICE[2][33])
