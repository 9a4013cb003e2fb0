"""Errata of malach2019, in the text that we have (see `EDITION`).

None of them affects the main result, learning under local correlation.
"""

from __future__ import annotations

from unlazy.lab.claims import Erratum

_TESTS = "tests/papers/malach2019/test_errata.py::"

ERRATA = (
    Erratum(
        id="malach2019/regulariser",
        where="Section 3 (R_λ), used in the proof of Lemma 15",
        printed="R_λ(ŷ) = λ|1 − ŷ|, with derivative λ in the proof",
        correction="R_λ(ŷ) = λ|1 + ŷ|. On [−1, 1] the derivative of λ|1 − ŷ| is −λ; the proofs "
        "use +λ.",
        shown=(
            "OR(x1, x3) with P(x1 = 1) = 0.3, P(x3 = 1) = 0.4 satisfies the local correlation "
            "assumption with Δ = 0.28. With λ = E y + Δ/4 and the printed sign, "
            "Algorithm 1 on the exact distribution makes a gate constant and has error 18 %. "
            "With |1 + ŷ| its error is zero. If labels are balanced, as in Corollary 10, or if the "
            "target is a parity of independent bits, as in Corollary 7, both signs learn it."
        ),
        test=_TESTS + "test_the_printed_regularizer_loses_a_gate",
    ),
    Erratum(
        id="malach2019/gradient-norm",
        where="Proofs of Lemmas 15, 16 and 22; no statement is affected",
        printed="⟨x, p⟩ = 1{x = p}·‖p‖, so ⟨∂L, p⟩ = (2√2·v_l/n_i)·E[(λ − y)·1{x = p}]",
        correction="⟨p, p⟩ = ‖p‖² = 2, so the factor is 4/n_i",
        shown=(
            "Automatic differentiation of the loss. All statements keep their constants. Lemma 15 "
            "gains a factor √2. Lemma 16 holds with 2¹¹: f takes values in an interval of length "
            "2, so that Hoeffding's bound is 2·exp(−|S|τ²/2), which more than makes up for √2. The "
            "set A_t keeps 4√2·η/n_i, since |E[(λ − y)·1{x = p}]| ≤ (1 + Δ/4)/2 < √2. In Lemma 22, "
            "¼ becomes √2/4, which the factor √2 of Lemma 15 makes up for."
        ),
        test=_TESTS + "test_the_gradient_along_a_pattern_has_the_square_of_its_norm",
    ),
    Erratum(
        id="malach2019/constant-gates",
        where="Definition of ν_j before Lemma 14, used in the proof of Lemma 15, case I = 0",
        printed="ν_j := 1 if I_{i−1,j} = 0; −v_l⟨∂L, p⟩ = (2√2/n_i)(λ − E y)·P(p) > 0",
        correction="ν_j := −1 if I_{i−1,j} = 0: by the line before, −v_l⟨∂L, p⟩ = −(2√2/n_i)(λ − E "
        "y)·P(p) < 0",
        shown="A gate without influence, trained on the exact distribution, takes the value −1 "
        "on all patterns. With −λ, the derivative of the printed R_λ, it takes the value +1. "
        "Theorems 2 and 4 do not depend on it.",
        test=_TESTS + "test_gates_without_influence_become_minus_one",
    ),
    Erratum(
        id="malach2019/influence",
        where="Section 4, definition of I_ij; the index 1…i may have been misread as i − 1",
        printed="I_ij = P(Γ_{i−1}(x) ≠ Γ_{i−1}(x ⊕ e_j))",
        correction="I_ij = P(Γ_{1…i}(x) ≠ Γ_{1…i}(x ⊕ e_j)): the influence on the output of the "
        "circuit",
        shown=(
            "Γ_{i−1} has 2^{i−1} inputs, not 2^i, and one level alone does not determine the "
            "output: with LEFT(a, b) = a, in LEFT(LEFT(x1, x2), LEFT(x3, x4)) flipping x3 "
            "flips a gate of its level but never the output."
        ),
        test=_TESTS + "test_influence_is_that_on_the_output",
    ),
    Erratum(
        id="malach2019/parity-circuit",
        where="Section 5.1, circuit of Lemma 5; proof of Lemma 6",
        printed="γ_ij(z1, z2) = z1·z2 for all i < d − 1; Lemma 6 then states that I_ij ≠ 0 "
        "excludes constant gates",
        correction="gates with one relevant side pass that side on, and gates without relevant "
        "inputs are constant",
        shown=(
            "In the printed circuit a constant gate is a factor of a product, so it has "
            "influence, while its correlation is E y. The local correlation assumption and "
            "Lemma 6 then fail with |c_ij| − |E y| = 0 if some pair of inputs has no relevant one. "
            "Lemma 5 and Corollary 7 hold in both cases: the algorithm does not use the circuit."
        ),
        test=_TESTS + "test_the_printed_parity_circuit_breaks_lca",
    ),
    Erratum(
        id="malach2019/lemma8-equality",
        where="Lemma 8; its proof ends with ≥",
        printed="|c_ij| − E y > (2/3)^d for every i ∈ [d]",
        correction="≥, with equality at i = d; so the local correlation assumption, "
        "whose inequality is strict, holds for "
        "every Δ < (2/3)^d",
        shown="|c_ij| = (2/3)^i exactly, by the lemma's own induction.",
        test=_TESTS + "test_lemma_8_is_an_equality_at_the_inputs",
    ),
    Erratum(
        id="malach2019/lemma8-recursion",
        where="Proof of Lemma 8; the statement is not affected",
        printed="AND: (2/3)p⁺ − 1/3; OR: (2/3)p⁺ + (1 − p⁺); the last line is (2/3)^d",
        correction="AND: (2/3)p⁺ + 1/3; OR: (2/3)p⁺; the last line is (2/3)^i",
        shown=(
            "With the printed line for AND, a probability becomes negative in a tree of two "
            "levels. The differences p⁺ − p⁻ are not affected."
        ),
        test=_TESTS + "test_the_recursion_of_lemma_8_as_printed_gives_a_negative_probability",
    ),
    Erratum(
        id="malach2019/theorem12-margin",
        where="Proof of Theorem 12, last inequality; 1/γ may have been lost in our copy",
        printed="4Bkn′·⌈2Bk(2n′ + 1)/γ⌉ ≤ 24B²k²(n′)²",
        correction="24B²k²(n′)²/γ, up to rounding: the factor 1/γ is needed",
        shown="At B = k = 1, n′ = 8, γ = 0.01 the left side is 108,800, the right side 1,536. For "
        "a constant γ the theorem holds.",
        test=_TESTS + "test_the_bound_of_theorem_12_needs_the_margin",
    ),
    Erratum(
        id="malach2019/corollary13-rate",
        where="Corollary 13(2)",
        printed="any depth-two bounded-weight ReLU network that separates D with a constant "
        "margin has size 2^Ω(n)",
        correction="2^Ω(n^{1/3}), as Theorem 12 gives with m = (n/2)^{1/3}",
        shown=(
            "f_m has a two-layer network of 2m·m^{2m} + 1 = 2^O(n^{1/3}·log n) neurons with "
            "weights in [−1, 1] and margin ½: 2m neurons for each choice of one term per clause. "
            "At m = 2 it has 65 neurons and is correct on all 65,536 inputs. Other read-once "
            "circuits of these gates do not help: their approximate degree is O(√n) "
            "(Reichardt, 2011), and products of inputs are sums of a few ReLUs."
        ),
        test=_TESTS + "test_f_m_has_a_network_of_fewer_neurons_than_corollary_13_says",
    ),
)
