"""What people expect of any command line: defaults of their own, loudness, completion,
citations.
"""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from unlazy.cli import defaults
from unlazy.cli.main import main
from unlazy.lab import registry


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A command line in an empty folder, with an empty configuration folder and no store in the
    environment.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNLAZY_STORE", raising=False)
    monkeypatch.setattr(defaults, "user_file", lambda: tmp_path / "home" / "config.toml")
    return lambda *words: CliRunner().invoke(main, list(words))


def test_a_file_sets_defaults_and_the_command_line_comes_first(run, tmp_path, monkeypatch):
    (tmp_path / "unlazy.toml").write_text('store = "mine.sqlite"\n[export]\nformat = "jsonl"\n')
    assert "no store at mine.sqlite" in (told := run("export").output) or "mine.sqlite" in told
    assert "other.sqlite" in run("export", "--store", "other.sqlite").output
    monkeypatch.setenv("UNLAZY_STORE", "environment.sqlite")
    assert "environment.sqlite" in run("export").output


def test_the_folders_file_comes_before_the_users(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('store = "users.sqlite"\nmemory = 1\n')
    assert "users.sqlite" in run("show").output
    (tmp_path / "unlazy.toml").write_text('store = "folders.sqlite"\n')
    assert "folders.sqlite" in run("show").output
    assert "folders.sqlite" in run("config").output and "memory = 1" in run("config").output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('stor = "x"', "no option named 'stor'. Did you mean 'store'"),
        ("[exprot]\nformat = 'csv'", "no command named 'exprot'. Did you mean 'export'"),
        ("[export]\nfromat = 'csv'", "no option named 'fromat'. Did you mean 'format'"),
        ("store = ", "cannot be read as TOML"),
        ("[export]\nformat = 'xml'", "'xml' is not one of"),
    ],
)
def test_a_wrong_file_is_refused_with_the_nearest_name(run, tmp_path, text, told):
    (tmp_path / "unlazy.toml").write_text(text)
    found = run("export")
    assert found.exit_code == 2 and told in found.output
    assert run("completion", "bash").exit_code == 0, "what could help must not fail too"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[compare]\nlearner = ["helper.py:X"]', "a file of code"),
        ('[reproduce]\njson = "../other.json"', "a path outside of this folder"),
        ('[report]\nout = "/tmp/page.html"', "a path outside of this folder"),
        ('[report]\nout = "link/page.html"', "a path outside of this folder"),
        ('engine = "insecure+tcp://10.0.0.5:8786"', "an engine"),
    ],
)
def test_the_folders_file_cannot_name_code_paths_outside_or_engines(run, tmp_path, text, why):
    (tmp_path / "link").symlink_to("/tmp")
    (tmp_path / "helper.py").write_text("raise SystemExit('run')")
    (tmp_path / "unlazy.toml").write_text(text)
    found = run("show")
    assert found.exit_code == 2 and why in found.output and "config.toml" in found.output
    (tmp_path / "unlazy.toml").unlink()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(text)
    assert why not in run("show").output, "the user's own file may"


def test_names_from_files_are_neither_markup_nor_commands_of_the_terminal(run, tmp_path):
    rows = ["k[/dim],b\x1b[31mred,y", *(f"{i % 7},{i % 5},{i % 3}" for i in range(30))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    found = run("audit", "t.csv", "--target", "z")
    assert found.exit_code == 2 and "k[/dim]" in found.output and "b\\x1b[31mred" in found.output
    found = run("doctor", "--engine", "[/red]")
    assert found.exit_code == 1 and "no engine named '[/red]'" in found.output


def test_quiet_says_nothing_and_json_is_still_there(run):
    words = [
        "compare",
        "parity",
        "--set",
        "d=4",
        "--learner",
        "linear",
        "--n",
        "20",
        "--seeds",
        "2",
        "--budget",
        "1",
        "--test",
        "50",
    ]
    loud = run(*words, "--store", "a.sqlite")
    assert loud.exit_code == 0 and "parity" in loud.output
    assert run(*words, "--store", "a.sqlite", "--quiet").output == ""
    assert run(*words, "--store", "a.sqlite", "-q", "--json", "-").output.startswith("{")


def test_verbose_shows_all_of_an_error(run):
    assert run("compare", "nothing", "--learner", "linear").exit_code == 2
    found = run("compare", "nothing", "--learner", "linear", "--verbose")
    assert found.exit_code == 1 and "no task named 'nothing'" in str(found.exception)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_what_the_shell_wants(run, shell):
    found = run("completion", shell)
    assert found.exit_code == 0 and "_UNLAZY_COMPLETE" in found.output


def test_completion_completes():
    environment = {
        "_UNLAZY_COMPLETE": "bash_complete",
        "COMP_WORDS": "unlazy rep",
        "COMP_CWORD": "1",
        "PATH": "/usr/bin:/bin",
    }
    code = (
        "import sys; sys.argv = ['unlazy']; from unlazy.cli.main import main; "
        "main(prog_name='unlazy')"
    )
    environment["PYTHONPATH"] = ":".join(sys.path)
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert {line.partition(",")[2] for line in found.stdout.splitlines()} == {"report", "reproduce"}


def test_citations_name_the_paper_once_and_the_tool(run):
    found = run("cite", "shi2022/table1", "shi2022/task", "glasgow2023").output
    assert (
        found.count("@inproceedings{shi2022,") == 1
        and "Glasgow, Margalit" in found
        and found.count("@software{unlazy,") == 1
    )
    assert run("cite").output.count("@") == 1
    assert "Did you mean 'shi2022" in run("cite", "shi2022/tabel1").output


def test_every_paper_is_cited_in_bibtex():
    for catalog in registry.catalogs():
        if hasattr(catalog, "CITATION"):
            name = catalog.__name__.rpartition(".")[2]
            assert catalog.BIBTEX.partition("{")[2].startswith(f"{name},") and catalog.BIBTEX.count(
                "{"
            ) == catalog.BIBTEX.count("}")
