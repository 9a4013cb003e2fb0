"""No network, and nothing of the user's own folders."""

import pytest


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """Nothing is read from, or left in, the folders of the user."""
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("UNLAZY_DATA", str(tmp_path / "data"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    return tmp_path / "data"
