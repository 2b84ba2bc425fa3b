from contextlib import closing

from harness.checks.refusal import attempt, judge, refused
from harness.checks.snapshot import Snapshot
from harness.checks.transfer_plan import scattered


def test_refusal(illegal, driver, cell, meter):
    """A layout and io backend that cannot work here are refused by name, and nothing is written."""
    what = f"layout {illegal.layout} with io backend {illegal.io_backend} on {illegal.platform}"
    names = (illegal.layout, illegal.io_backend, "layout", "IO backend")
    built = []
    error = attempt(lambda: built.append(driver.build(illegal.request())))
    if not built:
        refused(what, [judge("building the pool", error, names)])
    with closing(built[0]) as pair:
        snapshot = Snapshot(pair)
        plan = scattered(pair, cell.seed)
        errors = {
            "backup": attempt(lambda: pair.backup(plan.host, plan.device)),
            "load": attempt(lambda: pair.load(plan.host, plan.device, 0)),
        }
        snapshot.check_unchanged(meter, f"after a refused transfer of {what}")
        refused(what, [judge(step, error, names) for step, error in errors.items()])
