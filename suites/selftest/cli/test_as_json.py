import json
import os

import pytest

from harness.errors import UsageError
from harness.reports.as_json import check_target, write_json


@pytest.mark.parametrize("target", [None, "-"])
def test_targets_that_need_no_file(target):
    assert check_target(target) == target


def test_checking_creates_nothing(tmp_path):
    assert check_target(str(tmp_path / "out.json"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing/out.json", "there is no folder"), (".", "is a folder"), ("file/out.json", "there is no folder")],
)
def test_impossible_target(tmp_path, name, message):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=message):
        check_target(str(tmp_path / name))


def test_empty_target():
    with pytest.raises(UsageError, match="expected a file"):
        check_target("")


def test_object_in_a_file(tmp_path):
    write_json(str(tmp_path / "out.json"), "run", 1, {"cells": []})
    written = json.loads((tmp_path / "out.json").read_text())
    assert written == {"schema": 1, "command": "run", "exit_code": 1, "cells": []}


def test_object_on_standard_output(capsys):
    write_json("-", "list", 0, {"cells": []})
    assert json.loads(capsys.readouterr().out)["command"] == "list"


def test_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to("real")
    write_json(str(tmp_path / "link"), "run", 0, {})
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["schema"] == 1


def test_pipe_is_written_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    write_json(str(tmp_path / "pipe"), "run", 0, {})
    assert json.loads(os.read(reader, 1000))["schema"] == 1
    assert (tmp_path / "pipe").is_fifo()
    os.close(reader)
