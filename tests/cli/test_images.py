"""Image datasets on the command line: listing, missing data, and a claim up to its verdict."""

import json

import pytest
from click.testing import CliRunner

from image_files import write_images, write_mnist, write_svhn
from unlazy.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("UNLAZY_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    return lambda *arguments: CliRunner().invoke(
        main, [*map(str, arguments)], catch_exceptions=False
    )


def words(result):
    return " ".join(result.output.split())


def test_without_data_commands_name_what_is_missing_and_how_to_download_it(run, tmp_path):
    ids = ("shi2022/figure19", "malach2019/figure4", "daniely2020/digits")
    result = run("reproduce", *ids, "--scale", "smoke", "--store", "s.sqlite", "--json", "v.json")
    rows = {row["id"]: row for row in json.loads((tmp_path / "v.json").read_text())}
    assert (
        result.exit_code == 0
        and {row["verdict"] for row in rows.values()} == {"not run"}
        and rows.keys() == set(ids)
    )
    assert "'unlazy data fetch svhn'" in rows["shi2022/figure19"]["reason"]
    assert "CIFAR-10 is missing" in rows["malach2019/figure4"]["reason"]
    benchmark = run(
        "compare", "images/mnist", "--learner", "linear", "--n", "20", "--store", "s.sqlite"
    )
    assert (
        benchmark.exit_code == 2
        and "MNIST is missing" in words(benchmark)
        and "--data or $UNLAZY_DATA" in words(benchmark)
    )
    listing = run("data")
    assert (
        listing.exit_code == 0
        and "246 MB to download" in words(listing)
        and "Tiny ImageNet is missing" in words(listing)
    )
    wrong = run("data", "--data", "nowhere")
    assert (
        wrong.exit_code == 2
        and "--data must be a folder with image datasets, but nowhere does not exist"
        in words(wrong)
    )
    assert run("data", "fetch", "minst").exit_code == 2


def test_a_claim_runs_from_the_folder_that_is_named(run, tmp_path):
    write_svhn(tmp_path / "data", n=1000, tests=60)
    result = run(
        "reproduce",
        "shi2022/figure19",
        "--scale",
        "smoke",
        "--data",
        "data",
        "--store",
        "s.sqlite",
        "--json",
        "v.json",
    )
    (verdict,) = json.loads((tmp_path / "v.json").read_text())
    assert (
        result.exit_code == 0
        and verdict["verdict"] == "undecided"
        and "smoke scale" in verdict["reason"]
    )
    assert run("report", "--store", "s.sqlite", "--data", "data", "--out", "p.html").exit_code == 0
    page = (tmp_path / "p.html").read_text()
    assert page.count('class="tiles"') == 2 * 4 and "Neurons of SVHN as images" in page
    write_mnist(tmp_path / "data")
    assert "40 + 20" in words(run("data", "--data", "data"))


@pytest.mark.slow
def test_pictures_of_ones_own_enter_a_contest(run, tmp_path):
    write_images(tmp_path / "mine", n=12)
    options = (
        "--n",
        "12",
        "--seeds",
        "2",
        "--budget",
        "1",
        "--test",
        "20",
        "--store",
        "s.sqlite",
        "--json",
        "c.json",
    )
    result = run(
        "compare",
        "images/cifar10",
        "--set",
        "data=mine",
        "--learner",
        "linear",
        "--learner",
        "convolutional-features",
        *options,
    )
    assert result.exit_code == 0, result.output
    assert (
        json.loads((tmp_path / "c.json").read_text()) and "convolutional-features" in result.output
    )
