"""The field's own words: terms that were replaced do not come back.

Each pattern is a term that a reader of the field would stumble over, with the word to use instead.
Former names that are still accepted (deprecated aliases, keys of stored records) are exempt.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Pattern: replacement.
TERMS = {
    r"(?<!power )(?<!power-)(?<!scaling )\blaws?\b(?! of large numbers)": "distribution",
    r"\bsecrets?\b": "ground truth, hidden directions",
    r"\bcontests?\b": "comparison, benchmark",
    r"\bcontenders?\b|\bentrants?\b": "method",
    r"\brivals?\b": "baseline",
    r"\bbouts?\b": "fold result",
    r"\bspeaks? for\b|\bspeakers?\b|\bspoke for\b": "is selected for",
    r"\bshel(f|ves)\b": "catalog",
    r"\bthe house\b|\brooms?\b": "package, layer",
    r"\bworlds?\b": "negative control",
    r"\bjudging seeds?\b": "held-out seeds",
    r"\bslips?\b": "error, typo",
    r"\bstor(y|ies)\b": "walkthrough",
    r"\bbeside\b": "next to, versus",
    r"\banew\b": "again",
    r"\b(goes|go|going|went) on\b": "resume, continue",
    r"\bshares? (of|that|which)\b|\b(a|the|its|their) shares?\b": "fraction",
    r"(?<!\bat )\bleast\b(?![- ]squares)": "minimum, smallest",
    r"\bgreatest\b": "maximum, largest",
    r"\bwhole numbers?\b": "integer",
    r"\bnumbers? of the task\b": "task parameter",
    r"\bsets? of images\b": "image dataset",
    r"\bpictures?\b": "image, figure, frame",
    r"\b(is|are) handed\b": "receives",
    r"\bwhat became of\b": "result",
    r"\brandom starts?\b": "random initialization",
    r"\bfair coins?\b|\bcoins?\b": "uniform bits",
    r"\btangent models?\b": "linearized network",
    r"\bforget(s|ting)?\b|\bforgot(ten)?\b": "full decay",
    r"\blabels of other inputs\b|\bsays? nothing\b": "shuffled labels",
    r"\bjournal(s|led|ed)?\b": "checkpoint",
    r"\byardsticks?\b": "benchmark",
    r"\binstruments?\b": "exact computation, diagnostic",
    r"\berrands?\b|\bdockets?\b|\bparcels?\b": "job, queue, message",
    r"\bsights?\b|\bscenes?\b|\breels?\b": "view, scenario, frame buffer",
    r"\bto the letter\b": "exactly as stated",
    r"\bfinite numbers\b": "diverged (NaN or inf)",
    r"\bthe one training loop\b": "the shared training loop",
    r"\bstillborn\b|\bmourn\w*": "failed",
    r"\b(is|are|was|farther|further) ahead\b": "outperforms",
    r"\btells?\b|\btelling\b|\bis told\b|\bare told\b": "reports, states",
    r"\bwhoever\b|\bwhatever\b": "any, each",
    r"\b\w*(optimis(?!tic)|normalis|standardis|regularis|factoris|linearis|initialis|generalis|memoris"
    r"|randomis|symmetris|summaris|minimis|maximis|vectoris|parallelis|serialis|organis|recognis"
    r"|discretis|penalis|characteris(e|ed|es|ing)\b|visualis|orthogonalis|diagonalis|polaris|localis|realis"
    r"|specialis|emphasis(e|ed|es|ing)\b)\w*": "American spelling",
    r"\b(un|re)?labell(ed|ing)\b|\bmodell(ed|ing)\b|\b\w*centr(e|es|ed|ing)\b|\b\w*colour\w*"
    r"|\b\w*behaviour\w*|\bfavour\w*|\bneighbour\w*|\bgrey\b|\bcatalogue\w*|\banalys(e|ed|es|ing)\b"
    r"|\bartefact\w*|\bjudgements?\b|\bcancelled\b|\blicence\b": "American spelling",
    r"\b(examples|neurons|trials|seeds|steps|runs|points|rows|records|lines|values|pages?|files?"
    r"|folds|bits|settings|fits|networks|draws|names?|entry|column|record|value|program|one) a "
    r"(step|row|program|claim|task|learner|command|paper|seed|trial|gate|level|core|second|fold"
    r"|neuron|class|worker|method|layer|run|column|page|word|line|process|record|size)\b": "per",
}
#: Lines that keep a former name on purpose.
KEPT = re.compile(
    r'KEY = "|metadata=\{"key"|renamed_parameters\(|"(instrument|contenders|contest|law|optimiser)"'
    # An erratum's id, arms, a measure, and a field of BibTeX.
    r'|malach2019/regulariser|(generative|parity|\{kind\}), least sample"|["`]least["`]'
    r'|^least,corollary10,|^contest,|"(least|greatest) margin"|"SGD beside the grid"|journal = \{'
    # The standard library, and the id of a claim.
    r"|import secrets|secrets\.(compare_digest|token_urlsafe)|daniely2020/contest"
    # Claims, arms, parts and measures of shi2022 and daniely2020, and a field of BibTeX.
    r"|daniely2020/contest|^## contest$|,contest,|\b(theorem1|practical) contest digits"
    r'|shi2022/memorising|^## memorising$|one-step memorising|"tangent model"|"coins[",]'
    r'|["`](least|greatest|normalised)["`]|^(law,,|(least|greatest|normalised),)|journal = \{'
    r"|real world classification problems|\"CANCELLED\"|array_parallelism="
    r'|["`]centres["`]'
    # Names of arms in generated tables.
    r"|^- least( risk)?: "
    r"|^(\||-) .*(\bcoins, k=|(least|greatest) margin:|, least sample:|tangent model:)"
    # Former names of the package and of the command line.
    r'|^    "(Contest|Instrument|--\w[\w-]*)": "'
    r"|`LawGradients` is |optimiser=, forget="
)
FILES = sorted(
    path
    for pattern in ("src/**/*", "docs/**/*", "tests/**/*", "scripts/*", "benchmarks/*.py", "*.md")
    for path in ROOT.glob(pattern)
    if path.suffix in {".py", ".md", ".js", ".html", ".css", ".csv", ".rst"}
    and not {"_build", "__pycache__", "examples", "interface"} & {*path.parts}
    and path.parent != ROOT / "docs" / "papers"  # generated from src, scripts and results
    and path.name not in {"test_language.py", "deprecation.py"}
)


def findings(path):
    """Return `(line number, term, replacement)` of each replaced term in a file."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.replace("\\n", "  ")  # a word after an escaped line break
        if KEPT.search(line):
            continue
        for pattern, instead in PATTERNS.items():
            found += [(number, match[0], instead) for match in pattern.finditer(line)]
    return found


PATTERNS = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in TERMS.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_replaced_terms_do_not_come_back(path):
    assert findings(path) == []


def test_a_replaced_term_would_be_seen(tmp_path):
    (tmp_path / "a.md").write_text("Two examples a step are drawn\\nanew from the law.\n")
    assert [term for _, term, _ in findings(tmp_path / "a.md")] == [
        "law",
        "anew",
        "examples a step",
    ]
