"""Errata of allenzhu2019 (third version; our text was extracted from a PDF)."""

from __future__ import annotations

from unlazy.lab.claims import Erratum

_TESTS = "tests/papers/allenzhu2019/test_errata_of_hierarchy.py::"

ERRATA = (
    Erratum(
        id="allenzhu2019/initial-mean",
        where="Section 8.1, Setup",
        printed="Entries of A, V, W and the biases are i.i.d. from N(1, 1/m).",
        correction="N(0, 1/m), as in Section 6.",
        shown=(
            "With mean 1, every neuron of the first layer computes nearly the sum of all inputs, "
            "and all outputs are nearly the same sum over m neurons. At m = 100 and d = 30 the "
            "initial outputs are of order 10⁵ to 10⁶ and differ from each other by less than 2 %, "
            "while targets are of order 1. With mean 0 they are of order 1. The footnote gives a "
            "standard deviation by fan-in and fan-out, which also fits mean 0."
        ),
        test=_TESTS + "test_an_initial_mean_of_one_makes_outputs_huge_and_nearly_equal",
    ),
    Erratum(
        id="allenzhu2019/fact-a3-norm",
        where="Fact A.3, first inequality",
        printed="In the text we have: ‖F(x)‖ ≤ √k·p·C_s(F)·‖x‖ for every x.",
        correction="‖F(x)‖ ≤ √k·p·C_s(F)·‖(x, 1)‖.",
        shown=(
            "Definition A.1 has the factor ⟨w₂, (x, 1)⟩, which need not vanish at x = 0: with p = "
            "k = 1, F₁₁ = 1 + …, w₂ = (0, …, 0, 1) the function is 1 at the origin, where the "
            "bound is 0. |⟨w₂, (x, 1)⟩| ≤ ‖(x, 1)‖ gives the corrected bound. For ‖x‖ = 1 the "
            "bound grows by a factor √2, which C* absorbs, so that nothing else changes. If the "
            "extraction lost the 1 of (x, 1), the printed paper is right."
        ),
        test=_TESTS + "test_a_function_of_general_complexity_need_not_vanish_at_the_origin",
    ),
    Erratum(
        id="allenzhu2019/section-6.1",
        where="Section 6.1 and Appendix C, below the definition of D_W and D_{V,W}",
        printed="In the text we have: out(x) = A·D_{V,W}(V⁽⁰⁾ + V)(out₁(x), 1).",
        correction="out(x) = out₁(x) + A·D_{V,W}(V⁽⁰⁾ + V)(out₁(x), 1).",
        shown="Section 6 defines out with the skip connection, and Fact C.4 includes its part "
        "A·D_W·W'(x, 1) of the gradient. This is an aside; the statements and proofs are right.",
        test=_TESTS + "test_the_network_has_its_skip_connection",
    ),
    Erratum(
        id="allenzhu2019/claim-e3-bound",
        where="Claim E.3, and Eq. (E.1), Appendix E.2",
        printed="In the text we have: |p'_i| ≥ (i − 1)!!/4 for every odd i ≥ 1.",
        correction="|p'_i| = (i − 2)!!/√(2π) ≥ (i − 2)!!/4, with (−1)!! = 1.",
        shown=(
            "At x₁ = 1 the identity of the claim reads p'_i = E[h_i(α)·1[α ≥ 0]], which is "
            "h_{i−1}(0)/√(2π) = ±(i − 2)!!/√(2π). For i = 3 that is 0.399, below 2!!/4 = 0.5, and "
            "the ratio to (i − 1)!!/4 falls like 1/√i. With Hermite polynomials of the norm that "
            "Appendix E.2 prints, E[h_j²] = √(2π)·j!, the bound fails from i = 5 on. The claim "
            "cites another paper for its proof; a factor that depends on i may have been lost "
            "there or in the text we have, and earlier editions were not seen. Lemma E.2 is not "
            "affected: |c'_i| grows by a factor of at most √i, so that E[h²] has Σ i^{3/2}·|c_i|² "
            "instead of Σ i^{1/2}·|c_i|², at most a constant times (Σ (i + 1)·|c_i|)², which C* "
            "absorbs."
        ),
        test=_TESTS + "test_hermite_coefficients_of_an_indicator_have_another_double_factorial",
    ),
)
