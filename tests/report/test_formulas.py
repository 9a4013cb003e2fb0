"""Formulas as MathML and as Unicode text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from unlazy.lab import registry
from unlazy.lab.paper_files import definitions
from unlazy.report.formulas import (
    converts,
    html_scripts,
    html_text,
    mathml,
    plain,
    unicode_formula,
)

PAPERS = ["", *dict.fromkeys(name.partition("/")[0] for name in registry.claims())]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_definition_converts(paper):
    found = definitions(paper)
    assert found
    for each in found:
        assert converts(each.notation), each.notation
        text = unicode_formula(each.notation)
        assert not set(text) & set("\\$\n") and text, each.notation
        assert ElementTree.fromstring(mathml(each.notation)).tag == "math"


def test_every_statement_converts():
    for row in (*registry.claims().values(), *registry.not_run().values()):
        pieces = row.statement.split("$")
        assert len(pieces) % 2 == 1, row.id
        assert all(converts(formula) for formula in pieces[1::2]), row.id


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\max_{C}\max_{i,j}\left||c_{i,j}|-(2/3)^i\right|", "max_C max_{i,j} ||c_ij| − (2/3)^i|"),
        (r"\frac{a+b}{2c}", "(a + b)/(2c)"),
        (r"\frac{\sqrt{n}}{k}", "√n/k"),
        (r"\|x\|_2^2\leq 1", "‖x‖₂² ≤ 1"),
        (r"\binom{n-1}{k}^{-1/2}", "(n − 1 choose k)^(−1/2)"),
        (r"\bigl\{i:\ w_i^{(t)}\ge 0\bigr\}", "{i: w_i⁽ᵗ⁾ ≥ 0}"),
        (r"\log_{10}\frac{\rho^{(1)}}{\rho^{(2)}}", "log₁₀(ρ⁽¹⁾/ρ⁽²⁾)"),
        (r"\tilde\sigma\,\hat{y}", "σ̃ ŷ"),
        (r"\mathrm{TV}(\mathcal{D})", "TV(𝒟)"),
        (r"-x", "−x"),
        (r"\log\frac{a}{b} / \frac{\log(1+\eta\tau)}{\eta}", "log(a/b)/(log(1 + ητ)/η)"),
        (r"\frac{a}{b} / c", "(a/b)/c"),
        (r"|b|/\tfrac12", "|b|/(1/2)"),
        (r"\frac{a/b}{c/d}", "(a/b)/(c/d)"),
        (r"\frac{\sum_i a_i}{n}", "(∑_i a_i)/n"),
        (r"\frac{\log\zeta}{20}", "(log ζ)/20"),
        (r"\frac{x}{\sigma_w^2(D-k)}", "x/(σ_w²(D − k))"),
        (r"\sqrt{\sigma_w^2\tau^2(D-k)}", "√(σ_w² τ²(D − k))"),
        (r"\tfrac12(\tfrac12-\log\tfrac32)", "(1/2)(1/2 − log(3/2))"),
        (r"|p-\tfrac12|", "|p − 1/2|"),
        (r"\frac{1}{\epsilon}|x|", "(1/ϵ)|x|"),
        (r"\theta\log^c d", "θ log^c d"),
        (r"\log^2d", "log² d"),
        (r"\|a_ww\|", "‖a_w w‖"),
        (r"e^{6H}w", "e^(6H)w"),
    ],
)
def test_formulas_as_text(latex, text):
    assert unicode_formula(latex) == text


@pytest.mark.parametrize("latex", [r"\frac{a", r"\unknown{x}", r"{", "", r"\left(x", "x^", "^"])
def test_malformed_latex_is_shown_as_it_is_written(latex):
    converts(latex)  # never raises
    assert unicode_formula(latex) is not None
    assert ElementTree.fromstring(mathml(latex)).tag in ("math", "code")
    if not converts(latex):
        assert unicode_formula(latex) == latex and mathml(latex).startswith("<code>")


def test_text_around_formulas_is_escaped_and_scripts_are_not_markup():
    assert html_text("a < b & $x<y$").startswith("a &lt; b &amp; <math")
    assert plain("costs 5 $, bound $x^2$") == "costs 5 $, bound x²"
    for evil in (r"\text{<script>alert(1)</script>}", r"\href{javascript:alert(1)}{x}"):
        found = html_text(f"${evil}$")
        assert "<script" not in found and "href=" not in found


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("|c_ij| − (2/3)^i", "|c<sub>ij</sub>| − (2/3)<sup>i</sup>"),
        ("Σ_{j∈A} M_j", "Σ<sub>j∈A</sub> M<sub>j</sub>"),
        ("(−1)^((k−r)/2)·v_r", "(−1)<sup>(k−r)/2</sup>·v<sub>r</sub>"),
        ("n^Ω(log n), n^{1/3}", "n<sup>Ω(log n)</sup>, n<sup>1/3</sup>"),
        ("σ̃_w², ‖w_perp‖_max", "σ̃<sub>w</sub>², ‖w<sub>perp</sub>‖<sub>max</sub>"),
        ("mean_{c∈{1,2}} r_c", "mean<sub>c∈{1,2}</sub> r<sub>c</sub>"),
        ("D_A^{(1)}", "D<sub>A</sub><sup>(1)</sup>"),
        ("σ_φ²ε_eσ̃", "σ<sub>φ</sub>²ε<sub>e</sub>σ̃"),
        ("γ²p_minσ̃, a_iβγ/σ̃", "γ²p<sub>min</sub>σ̃, a<sub>i</sub>βγ/σ̃"),
        ("σ_ζd/σ̃", "σ<sub>ζ</sub>d/σ̃"),
        ("a_iT_b, q_ℓM_ℓ", "a<sub>i</sub>T<sub>b</sub>, q<sub>ℓ</sub>M<sub>ℓ</sub>"),
        (
            "∇_i L₀, ∇ᶜ_a, ℙ_x, x′_j, g_ã",
            "∇<sub>i</sub> L₀, ∇ᶜ<sub>a</sub>, ℙ<sub>x</sub>, x′<sub>j</sub>, g<sub>ã</sub>",
        ),
    ],
)
def test_scripts_of_text_are_raised_and_lowered(text, html):
    assert html_scripts(text) == html


@pytest.mark.parametrize(
    "text",
    [
        "w_scale, one_pass, x_test_y, __init__",
        "<code>a_i^2</code>",
        '<a href="#a_i">text</a>',
        "<math><mi>a_i</mi></math>",
        '<script type="application/json">{"a_i": "x^2"}</script>',
    ],
)
def test_names_code_and_markup_have_no_scripts(text):
    assert html_scripts(text) == text
