"""Slips in daniely2020, each with the test that shows it."""

from __future__ import annotations

from unlazy.lab.claims import Erratum

_TESTS = "tests/papers/daniely2020/test_first_step.py"

ERRATA = (
    Erratum(
        id="daniely2020/start",
        where="Section 2, symmetric initialisation",
        printed="w_{q+i} = −w_i, b_{q+i} = −b_i, u_{q+i} = −u_i, said to make the network vanish "
        "at the start",
        correction="w_{q+i} = w_i, b_{q+i} = b_i, u_{q+i} = −u_i",
        shown="as printed a pair gives u·[σ(h) − σ(−h)] with h = ⟨w, x⟩ + b, which is u·h where "
        "|h| ≤ 6, and not zero",
        test=f"{_TESTS}::test_the_printed_start_does_not_vanish",
    ),
    Erratum(
        id="daniely2020/lemma7-alpha",
        where="Proof of Lemma 7",
        printed="h(x) = √n·x_j·f_A(x) ≡ 1 for j in A, so that α = φ(w, b)",
        correction="h ≡ 1 holds on the all-equal half alone; under the mixture E h = 1/2, and α = "
        "φ(w, b)/2, which still lies in [1/4, 1]",
        shown="on the uniform half h is the product of the k − 1 other bits, whose mean is zero",
        test=f"{_TESTS}::test_alpha_is_half_of_the_printed_one",
    ),
    Erratum(
        id="daniely2020/lemma8-ceiling",
        where="Lemmas 8 to 10, the functions φ_r and ψ_r",
        printed="φ_r(z) = σ(−sign(r)·z + |r|) with σ(s) = min(max(s, 0), 6)",
        correction="φ_r(z) = max(−sign(r)·z + |r|, 0)",
        shown="(|r|/b)·σ(s) reaches far above 6 while φ_r as printed does not: for k ≥ 5 they "
        "differ by up to |r| + k − 6",
        test=f"{_TESTS}::test_features_with_a_ceiling_are_not_reached",
    ),
    Erratum(
        id="daniely2020/lemma10-coefficients",
        where="Proof of Lemma 10",
        printed="f_A = Σ_r (−1)^((k−r)/2)·v_r·ψ_r with v_r = 1 for |r| = k, 2.5 for |r| = 1, else "
        "2",
        correction="f_A = −Σ_r (−1)^((k−r)/2)·v_r·ψ_r with v_r = 2 for |r| < k and v_{±k} = 1 − "
        "½·(−1)^((k−1)/2)",
        shown="second differences of both sides on the places z = −k, −k + 2, …, k; the printed "
        "sum has a wrong sign for every k",
        test=f"{_TESTS}::test_the_separator_is_exact_for_odd_k",
    ),
)
