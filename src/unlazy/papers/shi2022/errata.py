"""Errors found in the text we have of the paper, with corrections. None affects a main conclusion.

Reference: shi2022.
"""

from __future__ import annotations

from unlazy.lab.claims import Erratum

_TESTS = "tests/papers/shi2022/test_errata.py::"

ERRATA = (
    Erratum(
        id="shi2022/mixture-background",
        where="Appendix C, proof of Theorem 2 (and Appendix E.1.1)",
        printed=(
            "D^mix = po·D⁽⁰⁾ + (1 − po)·D⁽¹⁾, with background rates 1/2 in D⁽⁰⁾ and po/(2 − 2po) "
            "in D⁽¹⁾, is in the family for γ = Θ(1), for every po ≤ 1/2."
        ),
        correction=(
            "It is in the family at po = 1/2 only. For po < 1/2 the two parts have different "
            "background rates. Background patterns then depend on each other and on the relevant "
            "ones, and (A2) fails. The bound po(1 − √(2N)B/2^k) then holds for the larger family "
            "with a dependent background. At po = 1/2 the mixture is in the family and proves the "
            "theorem; all experiments use po = 1/2."
        ),
        shown=(
            "Pr[φ̃_i = φ̃_j = 1] = po/4 + po²/(4(1 − po)) = po/(4(1 − po)) for two background "
            "patterns. This equals po² only if 4po(1 − po) = 1. At po = 0.3 it is 0.107 instead of "
            "0.09."
        ),
        test=_TESTS + "test_the_mixture_has_a_dependent_background_below_one_half",
    ),
    Erratum(
        id="shi2022/lemma12-bias",
        where="Lemma 12, equation (24); Lemma 38, equation (320)",
        printed="∂L/∂b_i = −a_i E{y I[y·g(x; ξ) ≤ 1] E_ξ I[⟨w_i, x⟩ + b_i ∈ (0, 1)]}",
        correction=(
            "The indicator is of ⟨w_i, x⟩ + b_i + ξ_i ∈ (0, 1), as in the gradients of w_i and "
            "a_i. Lemmas 16 and 21 use this form."
        ),
        shown=(
            "Automatic differentiation of the loss agrees with the corrected formula up to "
            "rounding, and not with the printed one."
        ),
        test=_TESTS + "test_the_gradient_of_the_bias_has_noise",
    ),
    Erratum(
        id="shi2022/lemma23-bias",
        where="Lemma 23, last sentence (and Lemma 48)",
        printed="|b_i⁽²⁾| = O(1/k²) for all i ∈ [2m]",
        correction=(
            "|b_i⁽²⁾| = O(√log(m/δ)/k²) for all i ∈ [2m], by Lemma 10. No later result needs the "
            "sharper form."
        ),
        shown=(
            "b_i⁽²⁾ is b_i⁽⁰⁾ ~ N(0, 1/k⁴) up to O(1/m), and the maximum of |b_i⁽⁰⁾| over m ≥ k⁴ "
            "neurons is about √(2 log m)/k²: no constant suffices for all m."
        ),
        test=_TESTS + "test_the_largest_bias_grows_with_the_width",
    ),
    Erratum(
        id="shi2022/lemma25-norm",
        where="Lemma 25, equations (271) and (275)",
        printed=(
            "|ℓ(g_ã⁽ᵗ⁾(x), y) − ℓ(g_ã⁽²⁾(x), y)| ≤ ‖ã‖₂√‖ã‖₀·(O(tηλσ̃/k) + η²t² + O(t/(km²))) for "
            "every x, with g_ã a sum over i ≤ m"
        ),
        correction=(
            "|⟨w_i⁽ᵗ⁾ − w_i⁽²⁾, x⟩| ≤ ‖w_i⁽ᵗ⁾ − w_i⁽²⁾‖·‖x‖, and ‖x‖ ≤ 1 for every x at po = 1/2 "
            "only. For po < 1/2 the bound holds in the mean over x, since E‖x‖ ≤ 1, which suffices "
            "for the proof of Theorem 26; or with the factor max(1, ‖x‖). The sum is over 2m "
            "neurons."
        ),
        shown=(
            "With all background patterns present, ‖x‖² is about (1 − po)/po. At po = 0.05 an "
            "input has ‖x‖ > 4, and moving w_i along x by ε changes ⟨w_i, x⟩ by more than 4ε."
        ),
        test=_TESTS + "test_inputs_are_longer_than_one_below_one_half",
    ),
    Erratum(
        id="shi2022/theorem26-constants",
        where="Lemma 23 and Theorem 26",
        printed=(
            "Lemma 23: η⁽¹⁾ = γ²σ̃/(km³), σ_ξ = k^(−3/2). Theorem 26, which follows from it: η⁽¹⁾ "
            "= γ²σ̃²/(km³), σ_ξ = k^(−2)."
        ),
        correction=(
            "The constants of the lemma are intended (Theorem 34 has them). With those printed in "
            "Theorem 26, ε_e2 = O(η⁽¹⁾|a_i|k(γ + ε_e)/(σ̃²σ_ξ)) is larger by σ̃√k, and Lemma 19's "
            "condition η⁽¹⁾ = O(γ/(kmσ_a)) becomes σ̃⁴ = O(k²m²), which m ≥ D still implies."
        ),
        shown="The ratio of the two ε_e2 and the condition at m = D, computed from the constants.",
        test=_TESTS + "test_the_theorem_and_its_lemma_set_different_constants",
    ),
    Erratum(
        id="shi2022/theorem33-class",
        where="Appendix D, proof of Theorem 4",
        printed="y = g_A(φ̃) = I[Σ_j (1 − φ̃_j) is odd], and g_A(φ̃) = Π_{j∈A} z_j with z_j = "
        "2φ̃_j − 1",
        correction=(
            "The sum runs over j ∈ A, and Π_{j∈A} z_j = +1 if Σ_{j∈A} (1 − φ̃_j) is even. For even "
            "k the product is +1 if no pattern is present, an input that no P ⊆ [k] labels +1. "
            "I[Σ_{j∈A} φ̃_j is odd] is in the family for every k, equals the product up to sign, "
            "and has the same correlations."
        ),
        shown="On all inputs of D bits the printed label is the opposite of the product.",
        test=_TESTS + "test_the_printed_class_is_the_opposite_of_the_product",
    ),
    Erratum(
        id="shi2022/general-variance",
        where="Appendix F.1.1",
        printed="σ̃² := Σ_i E(x̃_i − E x̃_i)² = Σ_j Var(φ̃_j) + dσ_ζ², and x = Mφ + ζ/σ_ζ",
        correction=(
            "Σ_i E(x̃_i − E x̃_i)² = Σ_j Var(φ̃_j) + Σ_{j≠ℓ} ⟨M_j, M_ℓ⟩Cov(φ̃_j, φ̃_ℓ) + dσ_ζ²: "
            "pairs of patterns that are both non-orthogonal and correlated contribute. Either "
            "value may be used as σ̃². The noise after normalization is ζ/σ̃, as in (305)."
        ),
        shown=(
            "Two patterns with inner product 0.5 that are always present together have variance "
            "3/4, not 1/2."
        ),
        test=_TESTS + "test_correlated_patterns_add_to_the_variance",
    ),
    Erratum(
        id="shi2022/lemma35-weights",
        where="Lemma 35",
        printed="|a_i*| ≤ 64k, and |⟨w_i*, x⟩ + b_i*| ≤ 1 for any (x, y) ~ D",
        correction=(
            "|a_i*| ≤ 128k for the network of the proof: the triangular bumps of g₂*, δ_{·,8,1/2}, "
            "have middle weight −16, and 8k·16 = 128k; another network may have smaller weights. "
            "The second bound holds only for the good inputs of the proof, "
            "since the noise ζ is unbounded."
        ),
        shown=(
            "If the mean u of the relevant patterns is a multiple of 1/2, some triangular bumps of "
            "g₁* have bias zero. Then g₂* must be used, and its weights are 128k."
        ),
        test=_TESTS + "test_shifted_hats_have_weights_of_128k",
    ),
    Erratum(
        id="shi2022/lemma36-energy",
        where="Lemma 36, proof",
        printed="‖q_S‖² ∈ [(‖ρ_S‖_F² − |S|/4)σ_w², (‖ρ_S‖_F² + |S|/4)σ_w²] with high probability",
        correction=(
            "The mean of ‖q_S‖² is σ_w²·tr(ρ_S) = σ_w²|S|, so |S| replaces ‖ρ_S‖_F². The lemma's "
            "bounds follow as before."
        ),
        shown="For three patterns with inner products 0.5, E‖q_S‖² = 3σ_w², while ‖ρ_S‖_F² = 4.5.",
        test=_TESTS + "test_the_mean_energy_is_the_trace",
    ),
    Erratum(
        id="shi2022/lemma44-noise",
        where="Lemma 44, last sentence (and the proofs of Lemmas 40, 45 and 48)",
        printed="With probability at least 1 − (d + D)·exp(−Ω(k)) over ζ, |ζ_j| ≤ O(σ_ζ√log k) and "
        "|⟨ζ, M_ℓ⟩| ≤ O(σ_ζ√log k) for all j and ℓ",
        correction="|ζ_j| ≤ O(σ_ζ√k) and |⟨ζ, M_ℓ⟩| ≤ O(σ_ζ√k) with this probability. The bound "
        "of Lemma 40 on ν_j does not need it: E ζ_j² = σ_ζ² suffices.",
        shown="P(|ζ_j| > Cσ_ζ√log k) is about k^(−C²/2), which exceeds (d + D)·exp(−ck) for large "
        "k and all constants C, c > 0; P(|ζ_j| > σ_ζ√(2k)) ≤ exp(−k).",
        test=_TESTS + "test_gaussian_noise_exceeds_the_root_of_the_logarithm",
    ),
    Erratum(
        id="shi2022/mixture-signs",
        where="Appendix E.3.2, the labeling function of a Gaussian mixture as a network",
        printed="y is roughly Σ_i a_i·ReLU(⟨c_i, x⟩) with a_i ∝ 1 for centers of label 1 and "
        "a_i ∝ −1 for those of label −1",
        correction="y is roughly Σ_i a_i·ReLU(⟨c_i, x⟩ − (k − 2)) with the printed signs: the "
        "neurons need biases. At every center this network equals 2y, for every k.",
        shown="Centers c_i and c that differ in h signs have ⟨c_i, c⟩ = k − 2h, so that only h = 0 "
        "passes the bias −(k − 2). Without biases the sum at a center is y·Σ_h C(k, h)(−1)^h·"
        "max(0, k − 2h): −4y for k = 4, and 0 for odd k ≥ 3, where opposite centers cancel.",
        test="tests/papers/shi2022/test_mixtures.py::test_the_printed_signs_need_biases",
    ),
)
