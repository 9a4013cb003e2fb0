"""Answers of the authors, read from papers/NAME/answers.md."""

import pytest

from unlazy.core.errors import BadInput
from unlazy.lab import registry
from unlazy.lab.paper_files import PAPERS, Answer, answers

TEXT = """# Answers

Instructions, with an example:

    ## paper/ID

    - 2026-01-01, Nobody: not an answer

## paper/row

- 2026-11-18, A. Author: The learning rate was 0.01.
  It was not tuned.
- 2026-11-19, B. Author: We agree.
"""


def write(tmp_path, text):
    (tmp_path / "paper").mkdir(exist_ok=True)
    (tmp_path / "paper" / "answers.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_answers_are_read(tmp_path):
    first = Answer(
        "paper/row", "2026-11-18", "A. Author", "The learning rate was 0.01. It was not tuned."
    )
    assert answers("paper", tmp_path) == ()
    found = answers("paper", write(tmp_path, TEXT))
    assert found == (first, Answer("paper/row", "2026-11-19", "B. Author", "We agree."))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("- The learning rate was 0.01.", "an answer is written"),
        ("- 2026-13-01, A. Author: yes", "month must be in 1..12"),
        ("The learning rate was 0.01.", "expected a heading or an answer"),
    ],
)
def test_malformed_answers_are_refused(tmp_path, line, message):
    with pytest.raises(BadInput, match=message):
        answers("paper", write(tmp_path, f"## paper/row\n\n{line}\n"))


def test_every_paper_has_instructions_and_answers_are_about_known_entries():
    known = registry.claims() | registry.not_run() | registry.errata() | registry.discrepancies()
    for paper in registry.editions():
        text = (PAPERS / paper / "answers.md").read_text(encoding="utf-8")
        assert text.startswith(f"# Answers of the authors of {paper}\n")
        assert {each.about for each in answers(paper)} <= known.keys()
