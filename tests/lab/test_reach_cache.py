"""Kept digests of reached code: equal to those that are computed, and never those of other code."""

import json

import pytest

from unlazy.core import source_code
from unlazy.core.source_code import reached
from unlazy.lab import reach_cache

ROOTS = [("unlazy.kernels.stationary", "RBF"), ("unlazy.lab.engines.local", "LocalEngine")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(
        reach_cache.platformdirs, "user_cache_dir", lambda name: str(tmp_path / name)
    )
    _new_process()
    yield tmp_path / "unlazy" / "reach"
    _new_process()


def _new_process():
    reach_cache._known.cache_clear()
    reach_cache._file.cache_clear()


def test_digests_are_kept_and_equal(folder, monkeypatch):
    first = reach_cache.cached_reach(ROOTS)
    assert first == reached(ROOTS)
    _new_process()
    monkeypatch.setattr(reach_cache, "reached", lambda roots: pytest.fail("is in the file"))
    assert reach_cache.cached_reach(reversed(ROOTS)) == first


def test_other_source_has_a_file_of_its_own(folder, tmp_path, monkeypatch):
    before = reach_cache._file()
    root = tmp_path / "unlazy-source"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels" / "a.py").write_text("X = 1\n")
    monkeypatch.setattr(source_code, "ROOT", root)
    names = {before}
    for text in ("X = 1\n", "X = 2\n"):
        (root / "kernels" / "a.py").write_text(text)
        _new_process()
        names.add(reach_cache._file())
    (root / "report").mkdir()
    (root / "report" / "b.py").write_text("no computation\n")
    _new_process()
    assert len(names) == 3 and reach_cache._file() in names


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"other": {}}'])
def test_a_damaged_file_is_computed_again(folder, content):
    reach_cache.cached_reach(ROOTS)
    reach_cache._file().write_text(content)
    _new_process()
    assert reach_cache.cached_reach(ROOTS) == reached(ROOTS)
    assert json.loads(reach_cache._file().read_text())


def test_without_a_writable_folder_it_only_takes_longer(folder):
    folder.parent.mkdir(parents=True)
    folder.write_text("a file where the folder should be")
    assert reach_cache.cached_reach(ROOTS) == reached(ROOTS)


def test_files_of_old_versions_are_deleted(folder):
    folder.mkdir(parents=True)
    for index in range(10):
        (folder / f"{index}.json").write_text("{}")
    reach_cache.cached_reach(ROOTS)
    assert len(list(folder.iterdir())) == reach_cache.KEPT
