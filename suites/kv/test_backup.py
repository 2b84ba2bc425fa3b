from contextlib import closing

from harness.checks.ledger import Ledger
from harness.checks.transfer_plan import scattered


def test_backup(case, driver, cell, meter):
    """Named host rows hold the device's rows, every other host byte and every device byte is unchanged."""
    with closing(driver.build(case.request())) as pair:
        ledger = Ledger(pair, meter)
        plan = scattered(pair, cell.seed)
        pair.backup(plan.host, plan.device)
        ledger.backup(plan.host, plan.device)
        ledger.check("after backup")


def test_backup_all_pages(case, driver, cell, meter):
    """A backup of every page of the device pool, twice into different host pages, leaves both copies right."""
    with closing(driver.build(case.request())) as pair:
        ledger = Ledger(pair, meter)
        pages = pair.device_slots // case.page_size - 1
        for turn, label in enumerate(("after the first backup", "after the second backup")):
            plan = scattered(pair, cell.seed + turn, pages=pages)
            pair.backup(plan.host, plan.device)
            ledger.backup(plan.host, plan.device)
            ledger.check(label)
            ledger.fill_device("device after the first backup")
