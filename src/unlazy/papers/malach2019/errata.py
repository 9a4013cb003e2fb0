"""Errata of malach2019.

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
            "With |1 + ŷ| its error is zero."
        ),
        test=_TESTS + "test_the_printed_regularizer_loses_a_gate",
    ),
    Erratum(
        id="malach2019/gradient-norm",
        where="Proof of Lemma 15, and from there Lemma 16, the set A_t and Lemma 22",
        printed="⟨x, p⟩ = 1{x = p}·‖p‖, so ⟨∂L, p⟩ = (2√2·v_l/n_i)·E[(λ − y)·1{x = p}]",
        correction="⟨p, p⟩ = ‖p‖² = 2, so the factor is 4/n_i",
        shown=(
            "Automatic differentiation of the loss. Lemma 15 then holds with a spare factor √2. "
            "The same √2 enters Lemma 16, where 2¹² instead of 2¹¹ would keep the printed "
            "argument; the bound 4√2·η/n_i of A_t, which becomes 8η/n_i; and ⟨w_l, p⟩ ≤ √2/(4k) "
            "in Lemma 22. T is large enough for all of them, so Theorem 4 holds with its "
            "constants."
        ),
        test=_TESTS + "test_the_gradient_along_a_pattern_has_the_square_of_its_norm",
    ),
    Erratum(
        id="malach2019/constant-gates",
        where="Proof of Lemma 15, case I = 0",
        printed="−v_l⟨∂L, p⟩ = (2√2/n_i)(λ − E y)·P(p) > 0, so such gates become ν_j = 1",
        correction=(
            "The sign is reversed: for λ > E y, gates without influence become −1. With ν_j := −1 "
            "for them, the proof is correct."
        ),
        shown="A gate without influence, trained on the exact distribution, takes the value −1 "
        "on all patterns.",
        test=_TESTS + "test_gates_without_influence_become_minus_one",
    ),
    Erratum(
        id="malach2019/theorem4-width",
        where="Theorems 2 and 4",
        printed="k ≥ log(2nd/δ)/log(4/3)",
        correction="k ≥ log(8nd/δ)/log(4/3), as Lemma 14 requires with δ′ = δ/d",
        shown=(
            "Lemma 21 and the union bound over n_i/2 gates require log(4·n_i·d/δ). If the n − 1 "
            "gates are counted once, the printed width fails with probability at most 2δ/d at "
            "initialization and δ/d on the sample, which suffices for d ≥ 3."
        ),
        test=_TESTS + "test_the_width_of_theorem_4_is_smaller_than_that_of_lemma_14",
    ),
    Erratum(
        id="malach2019/influence",
        where="Section 4, definition of I_ij",
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
        id="malach2019/no-correlation-balance",
        where="Section 4.1, first paragraph",
        printed="a neural gate of an influencing gate without correlation to the label becomes "
        "constant, and the algorithm fails",
        correction="this holds if labels are balanced, E y = 0; in general the gate becomes "
        "constant if Cov(z, y) = 0",
        shown=(
            "OR(x1, x3) with P(x1 = 1) = 1/4 and P(x3 = 1) = 2/3: E y = 1/2, and E[x1·y] = 0. The "
            "local correlation assumption fails, yet S_p is −(1 − λ)/4 for x1 = 1 and positive for "
            "x1 = −1. So the gate and the function are learned without error."
        ),
        test=_TESTS + "test_a_gate_without_correlation_may_be_learned_if_labels_are_not_balanced",
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
            "Lemma 5 holds in both cases."
        ),
        test=_TESTS + "test_the_printed_parity_circuit_breaks_lca",
    ),
    Erratum(
        id="malach2019/sampler",
        where="Section 5.2, definition of D⁽ⁱ⁾",
        printed="x′_j ∼ U(S_γ) if z_j = 1, and otherwise x′_j ∼ U(S_γ) as well; γ_{i,j}",
        correction="the second set is the complement, U(S^c_γ), and the gate with inputs on level "
        "i is γ_{i−1,j}; the superscript c may have been lost in our copy of the text",
        shown="With the same set in both cases, every gate has value +1 for both values of z, and "
        "Lemma 9 fails by a total variation distance of 2/3 at n = 4.",
        test=_TESTS + "test_the_printed_sampler_breaks_lemma_9",
    ),
    Erratum(
        id="malach2019/lemma8-equality",
        where="Lemma 8",
        printed="|c_ij| − E y > (2/3)^d for every i ∈ [d]",
        correction="≥, with equality at i = d; so the local correlation assumption, "
        "whose inequality is strict, holds for "
        "every Δ < (2/3)^d",
        shown="|c_ij| = (2/3)^i exactly, by the lemma's own induction.",
        test=_TESTS + "test_lemma_8_is_an_equality_at_the_inputs",
    ),
    Erratum(
        id="malach2019/lemma8-recursion",
        where="Proof of Lemma 8",
        printed="AND: (2/3)p⁺ − 1/3; OR: (2/3)p⁺ + (1 − p⁺); the last line is (2/3)^d",
        correction="AND: (2/3)p⁺ + 1/3; OR: (2/3)p⁺; the last line is (2/3)^i",
        shown=(
            "With the printed line for AND, a probability becomes negative in a tree of two "
            "levels. The differences p⁺ − p⁻ are not affected."
        ),
        test=_TESTS + "test_the_recursion_of_lemma_8_as_printed_gives_a_negative_probability",
    ),
    Erratum(
        id="malach2019/generative-epsilon",
        where="Section 5.2, after Lemma 9",
        printed="Property 3 holds with ε = (1/4)^d = 1/n²",
        correction="Property 3 holds with ε = ¼·(2/3)^d = ¼·n^{log₂(2/3)} for every such circuit, "
        "and with no larger ε for circuits of OR gates; this is smaller than 1/n² at n = 2, and "
        "larger from n = 4 on",
        shown=(
            "A node takes each value with probability at least ½(2/3)^i, and the probability of "
            "a pattern is at least a third of that; circuits of OR gates attain it. At d = 1 an "
            "AND gate has patterns of probability 1/6 < 1/4. The larger ε reduces |S| of "
            "Corollary 10 by a factor of order n^2.8."
        ),
        test=_TESTS + "test_the_rarest_pattern_of_a_generative_distribution",
    ),
    Erratum(
        id="malach2019/theorem12-margin",
        where="Proof of Theorem 12, last inequality",
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
