from contextlib import closing

from harness.checks.ledger import Ledger
from harness.checks.transfer_plan import scattered


def test_round_trip(case, driver, cell, meter):
    """Rows that were backed up come back to other device slots, to the bit, after the device pool was overwritten."""
    with closing(driver.build(case.request())) as pair:
        ledger = Ledger(pair, meter)
        out, back = scattered(pair, cell.seed), scattered(pair, cell.seed + 1)
        pair.backup(out.host, out.device)
        ledger.backup(out.host, out.device)
        ledger.fill_device("device after the backup")
        for layer in range(pair.geometry.total_layers):
            pair.load(out.host, back.device, layer)
        ledger.load(out.host, back.device)
        ledger.check("after backup and load")
