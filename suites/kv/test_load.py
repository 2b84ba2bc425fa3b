from contextlib import closing

from harness.checks.ledger import Ledger
from harness.checks.transfer_plan import scattered


def test_load(case, driver, cell, meter):
    """Each layer is complete once it was loaded; every other device byte and every host byte is unchanged."""
    with closing(driver.build(case.request())) as pair:
        ledger = Ledger(pair, meter)
        plan = scattered(pair, cell.seed)
        ledger.load(plan.host, plan.device)
        for layer in range(pair.geometry.total_layers):
            pair.load(plan.host, plan.device, layer)
            ledger.check_layer(layer, f"after load of layer {layer}")
        ledger.check("after load of all layers")
