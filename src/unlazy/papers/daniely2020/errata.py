"""Errors found in daniely2020, each with the test that shows it."""

from __future__ import annotations

from unlazy.lab.claims import Erratum

_TESTS = "tests/papers/daniely2020/test_first_step.py"

ERRATA = (
    Erratum(
        id="daniely2020/start",
        where="Section 2, symmetric initialization",
        printed="w_{q+i} = −w_i, b_{q+i} = −b_i, u_{q+i} = −u_i, so that the initial network is "
        "zero",
        correction="w_{q+i} = w_i, b_{q+i} = b_i, u_{q+i} = −u_i",
        shown="As printed, a pair computes u·[σ(h) − σ(−h)] with h = ⟨w, x⟩ + b. This is u·h if "
        "|h| ≤ 6, not zero. The proof of Lemma 12 uses g⁽⁰⁾ ≡ 0. From the printed initialization "
        "the hinge loss is zero on about half of the inputs, α of Lemma 7 is near 1/8, and "
        "|u_i⁽¹⁾| can exceed the k/√n of Lemma 12. Extraction may lose a symbol; here it "
        "would have added two signs.",
        test=f"{_TESTS}::test_from_the_printed_initial_network_lemmas_7_and_12_are_false",
    ),
    Erratum(
        id="daniely2020/lemma7-alpha",
        where="Proof of Lemma 7",
        printed="h(x) = √n·x_j·f_A(x) ≡ 1 for j in A, so α = φ(w, b)",
        correction="h ≡ 1 holds only on the component on which all bits of A agree. Under the "
        "mixture E h = 1/2, and α is near φ(w, b)/2, which is at least 1/4 up to a Gaussian tail. "
        "The lemma is not affected: its constant C₁ absorbs this tail.",
        shown="On the uniform component h is the product of the k − 1 other bits, with mean zero. "
        "For odd |J| and k/√n < b + 1/√n, φ/2 is 1/4 minus half the probability that the sum over "
        "J reaches 6 − k/√n − b: 6.9e-14 at n = 155,001 and k = 7.",
        test=f"{_TESTS}::test_half_of_phi_is_a_quarter_minus_a_tail",
    ),
    Erratum(
        id="daniely2020/lemma7-weights",
        where="Lemma 7",
        printed="max_{j∈A} |w_{i,j}⁽⁰⁾ − α_i u_i⁽⁰⁾/√n| ≤ C₁ and max_{j∉A} |w_{i,j}⁽⁰⁾ − "
        "α_i u_i⁽⁰⁾/√n| ≤ C₂/(n − 1)",
        correction="max_{j∈A} |w_{i,j}⁽¹⁾ − α_i u_i⁽⁰⁾/√n| ≤ C₁ and max_{j∉A} |w_{i,j}⁽¹⁾| ≤ "
        "C₂/(n − 1)",
        shown="This is what the proof shows and what Lemma 9 uses. Initial weights are −1, 0 or 1, "
        "so two different ones outside A cannot both be within C₂/(n − 1) < 1/2 of one number. A "
        "superscript may have been misread in extraction; the second difference is in the text we "
        "have.",
        test=f"{_TESTS}::test_initial_weights_are_not_near_one_number",
    ),
    Erratum(
        id="daniely2020/lemma8-ceiling",
        where="Lemmas 8 and 9, the functions φ_r and ψ_r",
        printed="φ_r(z) = σ(−sign(r)·z + |r|), with σ(s) = min(max(s, 0), 6) from Section 2",
        correction="φ_r(z) = max(−sign(r)·z + |r|, 0), without the truncation at 6",
        shown="(|r|/b)·σ(s) takes values far above 6, and φ_r as printed does not: for k ≥ 5 they "
        "differ by up to |r| + k − 6.",
        test=f"{_TESTS}::test_features_with_a_ceiling_are_not_approximated",
    ),
    Erratum(
        id="daniely2020/lemma10-coefficients",
        where="Proof of Lemma 10",
        printed="f_A = Σ_r (−1)^((k−r)/2)·v_r·ψ_r with v_r = 1 for |r| = k, 2.5 for |r| = 1, else "
        "2",
        correction="f_A = −Σ_r (−1)^((k−r)/2)·v_r·ψ_r with v_r = 2 for |r| < k and v_{±k} = 1 − "
        "½·(−1)^((k−1)/2)",
        shown="Second differences of both sides on z = −k, −k + 2, …, k. The printed sum has a "
        "wrong sign at some z for every odd k from 3 to 31. Lemma 10 itself is not affected.",
        test=f"{_TESTS}::test_the_separator_is_exact_for_odd_k",
    ),
    Erratum(
        id="daniely2020/lemma10-margin",
        where="Proof of Lemma 10",
        printed="neurons within ε = 1/(10k) of ψ_r with the probability of Lemma 9; |g* − f_A| ≤ "
        "1/2, so u* achieves the margin 1",
        correction="Lemma 9 gives 2ε with that probability, and |g* − f_A| ≤ 1/2 gives the margin "
        "1/2; a larger multiple of u* has margin 1.",
        shown="The factor 1/(1 − Σ_r |c_r|·2ε) suffices for a margin of 1. It is below 2 for the "
        "corrected coefficients c_r and k ≥ 7. Only the constant B changes, so that the lemma is "
        "not affected.",
        test=f"{_TESTS}::test_twice_the_separator_of_the_proof_has_margin_one",
    ),
)
