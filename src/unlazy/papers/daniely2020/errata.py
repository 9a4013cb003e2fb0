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
        "|h| ≤ 6, not zero.",
        test=f"{_TESTS}::test_the_printed_initial_network_is_not_zero",
    ),
    Erratum(
        id="daniely2020/lemma7-alpha",
        where="Proof of Lemma 7",
        printed="h(x) = √n·x_j·f_A(x) ≡ 1 for j in A, so α = φ(w, b)",
        correction="h ≡ 1 holds only on the component on which all bits of A agree. Under the "
        "mixture E h = 1/2, and α = φ(w, b)/2, which still lies in [1/4, 1].",
        shown="On the uniform component h is the product of the k − 1 other bits, with mean zero.",
        test=f"{_TESTS}::test_alpha_is_half_of_the_printed_one",
    ),
    Erratum(
        id="daniely2020/lemma8-ceiling",
        where="Lemmas 8 to 10, the functions φ_r and ψ_r",
        printed="φ_r(z) = σ(−sign(r)·z + |r|) with σ(s) = min(max(s, 0), 6)",
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
        "wrong sign at some z for every k.",
        test=f"{_TESTS}::test_the_separator_is_exact_for_odd_k",
    ),
)
