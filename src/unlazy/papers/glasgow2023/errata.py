"""Errata of glasgow2023, and statements that are not run.

Parts of our text of the paper are unreadable; errata that may be due to this say so.
"""

from __future__ import annotations

from unlazy.lab.claims import Erratum, NotRun

_TESTS = "tests/papers/glasgow2023/test_errata_of_xor.py::"

ERRATA = (
    Erratum(
        id="glasgow2023/lemma-c4",
        where="Lemma C.4 (B4), and the last display in the proof of (B3)",
        printed="−w_i·∇_i L₀ = ¼|a||w_i|·(P(X ∈ [√2‖w_opp‖ ± |w_i|]) − P(X ∈ [√2‖w_sig‖ ± "
        "|w_i|])), X = ⟨ξ without i, w⟩.",
        correction="−w_i·∇_i L₀ = ¼|a||w_i|·(P(X ∈ [√2‖w_sig‖ ± |w_i|]) − P(X ∈ [√2‖w_opp‖ ± "
        "|w_i|])).",
        shown=(
            "The proof begins with −w_i·∇_i L₀ = −a·E y·σ'·w_i·ξ_i, where the second minus sign "
            "is superfluous; the remaining steps are correct. Summed over all 2¹⁰ points of the "
            "cube, random neurons agree with the corrected value up to rounding; the printed one "
            "has the opposite sign. In the proof of (B3) the two cases of the last line are "
            "exchanged; the lemma states them correctly. Later results do not depend on the sign: "
            "Lemma C.15 uses the absolute value of (B4), and Lemma C.16 derives it correctly."
        ),
        test=_TESTS + "test_the_printed_sign_of_b4_is_wrong_and_the_corrected_one_exact",
    ),
    Erratum(
        id="glasgow2023/lemma-c5",
        where="Lemma C.5, second part",
        printed="In the text we have: for any x and any i in [d], (ℓ'_ρ(x) − ℓ'_ρ(x'))² ≤ "
        "16(E|a·w_i|)², where x' is x with coordinate i negated.",
        correction="The same for ℓ'_ρ − ℓ'_0 in place of ℓ'_ρ; as printed for i ≥ 3.",
        shown=(
            "For i = 1 or 2 the label changes with x_i, so that ℓ'_ρ changes by about 2 however "
            "small E|a·w_i| is. The proof uses that ℓ' is Lipschitz in f, for equal labels. "
            "ℓ'_ρ − ℓ'_0 = tanh(f/2) does not depend on the label, and changes by at most "
            "E|a·w_i|. Lemma C.3 needs only this difference, so that later results do not change. "
            "No other edition was seen."
        ),
        test=_TESTS + "test_loss_derivatives_change_with_the_label",
    ),
    Erratum(
        id="glasgow2023/length-of-mu",
        where="Eq. (D.1), Lemma D.4 (γ̃_max ≤ 1)",
        printed="In the text we have: e^{−H_ρ} ≤ g_min with H_ρ = E‖a·w‖; γ̃_μ ≤ E‖a·w₁:₂‖ ≤ 1.",
        correction="e^{−√2·H_ρ} ≤ g_min; γ̃_μ ≤ √2·E‖a·w₁:₂‖ ≤ √2.",
        shown=(
            "‖μ‖ = √2. A network whose neurons all point to μ₁ has f(μ₁) = √2·H_ρ, so g_min = "
            "2/(1 + e^{√2·H_ρ}) is below e^{−H_ρ} from H_ρ = 1.5 on. The corrected bounds follow "
            "from |⟨w, μ⟩| ≤ √2‖w‖ and 2/(1 + e^γ) ≥ e^{−γ}. They only change constants in "
            "exponents, which ζ ≤ e^{−10H} can absorb. Claim D.6, −⟨μ, ∇ᶜ_w L⟩ = |a|τg_μ(1 ± o(1)) "
            "with τ = √2/4, holds if μ is the unit vector there (⟨μ, ∇ᶜ_w L⟩ = −½|a|g_μ for ‖μ‖ = "
            "√2); an accent on μ may be lost in our text. No other edition was seen."
        ),
        test=_TESTS + "test_the_length_of_mu_matters",
    ),
    Erratum(
        id="glasgow2023/lemma-d12",
        where="Lemma D.12, end of the proof (neurons stay in S)",
        printed="e^{6H}‖w_perp‖² + ‖w_opp‖² does not grow; thus e^{6H}‖w_perp‖ + ‖w_opp‖ does "
        "not grow.",
        correction=(
            "Lemma D.7 gives the decrease of e^{6H}‖w_perp‖ + ‖w_opp‖ directly: divide its two "
            "inequalities by ‖w_perp‖ and ‖w_opp‖."
        ),
        shown=(
            "The implication does not hold: for e^{6H} = 403, changing (‖w_perp‖, ‖w_opp‖) from "
            "(0.001, 1) to (0.01, 0.9) decreases the sum of squares and increases the sum of "
            "norms. The conclusion is correct: the change of e^{6H}‖w_perp‖ + ‖w_opp‖ is at most "
            "−|a|(e^{6H}g_min·X/(4√2) + √2·g_min/8 − √2·g_max·X/4) up to ζ, which is negative "
            "since e^{6H}·g_min ≥ 2·g_max. On networks at the boundary of the definition it "
            "decreases for every neuron."
        ),
        test=_TESTS + "test_norms_decrease_although_squares_do_not_imply_it",
    ),
    Erratum(
        id="glasgow2023/theorem-3.1",
        where="Theorem 3.1, compared with Section 2.2, Theorem E.1 and Lemma C.1",
        printed="Initial scale θ/√p; probability 1 − d^{−ω(1)}.",
        correction=("Initial scale θ; probability 1 − θ, or Lemma C.1 with 1 − d^{−ω(1)}."),
        shown=(
            "Theorem E.1 restates the theorem with scale θ, which the proof assumes, and the "
            "network is 1/p times a sum, so θ needs no further factor. With θ/√p training takes "
            "½·log(p)/τ longer in time ηt (τ = √2/4), which is also of order log d. So the "
            "statement may hold as printed, but it is not what is proved. The exponent "
            "of θ in m is illegible in the copy we used; the proof requires m ≥ d/θ² (Lemmas C.1 "
            "and C.15)."
        ),
        test=_TESTS
        + "test_a_smaller_initial_scale_takes_longer_by_half_the_logarithm_of_the_width",
    ),
    Erratum(
        id="glasgow2023/proposition-f1",
        where="Proposition F.1, end of the proof",
        printed="In the text we have: the projection onto x_i takes d + 1 values −2d, −2(d − 1), "
        "…, 2d.",
        correction="The d + 1 values are −d, −d + 2, …, d.",
        shown="Enumeration of the inner products of sign vectors. Only their number is used. The "
        "last line of the proof reads P(ŷ = y(x)) ≥ 0.03 in our text, where the proposition "
        "bounds P(ŷ ≠ y(x)): a lost stroke, not an error of the paper. With the proof's constants "
        "the chain of inequalities gives at least 0.03 for every d ≥ 1009, and less at d = 1008.",
        test=_TESTS + "test_inner_products_of_sign_vectors",
    ),
)

NOT_RUN = (
    NotRun(
        id="glasgow2023/controlled-neurons",
        where="Lemmas C.14, C.15, C.16",
        kind="lemma",
        statement=(
            "If all neurons are controlled or weakly controlled (Definitions C.9, C.10), they "
            "remain so, and strong neurons (Definition C.13) remain strong; S_t² ≥ B_t²/log⁴(d) "
            "for t ≤ T_1a; for strong neurons ‖w_sig‖ ≥ ζ^{1.5}θ after T_1a steps and ‖w_sig‖ ≥ "
            "θ/ζ after T_1b steps."
        ),
        reason=(
            "No feasible size satisfies the conditions on the parameters. B₀² = log³(d)·θ²/d must "
            "be below θ²ζ² = θ²/log^{2c}(d) initially: even for c = 1, T_1a is negative below d = "
            "3.3·10⁵, and c must be large. Strong neurons initially grow at the rate 1/C_S, C_S > "
            "e^{100}, and S_t² ≥ B_t²/log⁴ d requires log d > e^{8·C_S}. The measurable parts are "
            "tested by phase1, gradients, deviation and minibatch."
        ),
    ),
    NotRun(
        id="glasgow2023/lemma-d3-minibatch",
        where="Lemma D.3 and the proof of Theorem 3.1 (with minibatches)",
        kind="lemma",
        statement="The step of Lemma D.3 is taken with a minibatch and iterated ζ^{−1/160}/η "
        "times, after which γ̃_min = ω(1).",
        reason=(
            "ζ ≤ e^{−10H} ≤ 4.5·10⁻⁵ and η ≤ ζ³ ≤ 10⁻¹³ require 10¹³ steps; gradient noise below "
            "ζ requires 10⁹·d examples per step. Larger steps overshoot: w_perp of a neuron of S "
            "shrinks at a rate that does not vanish with its norm of order e^{−6H}ζ. γ̃_min = ω(1) "
            "is asymptotic: at ζ = e^{−10} the time ζ^{−1/160} is 1.06. phase2-step tests one "
            "exact step."
        ),
    ),
    NotRun(
        id="glasgow2023/controlled-claims",
        where="Claims C.11, C.12",
        kind="lemma",
        statement="Before the end of phase 1a, the conditions of controlled neurons imply those of "
        "weakly controlled ones; and E‖a·w‖ and E|a·w_i| are bounded by powers of θ, B_t and ζ.",
        reason=(
            "They follow from the definitions by inserting the parameters, for c and C large. "
            "The exponents of ζ in Definition C.10 and Claim C.12, on which they depend, are "
            "unreadable in our text."
        ),
    ),
)
