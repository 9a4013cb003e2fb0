"""Questions to the authors about printed results.

Reference: shi2022, Tables 1 to 5.
"""

from __future__ import annotations

from unlazy.lab.claims import Discrepancy

_TESTS = "tests/papers/shi2022/test_discrepancies.py::"

DISCREPANCIES = (
    Discrepancy(
        id="shi2022/one-step-accuracy",
        where="Tables 1 to 5, training and test accuracy, column One Step",
        observed=(
            "Of the 16 printed accuracies, 14 lie within two binomial standard errors of Pr[y = "
            "−1] at 1,000 evaluated examples, the batch size. Pr[y = −1] is 50 % in Tables 1, 3 "
            "and 5 (printed: 50.0 to 53.0), Pr[Bin(30, 2/3) < 20] = 41.5 % in Table 2 (printed: "
            "41.0, 44.1), and 80 and 90 % in Table 4, if test data have the class ratio of "
            "training data (printed: 75.7, 78.3 and 89.2, 92.3). The text we have does not state "
            "the number of evaluated examples; the mean squared deviation is that of 535 examples. "
            "At 5,000 examples, as for averages of five runs, 10 of 16 lie within two standard "
            "errors."
        ),
        explanation="The classifier predicts −1 for every input.",
        excluded=(
            "Predicting the more frequent class: 12 of 16, since Table 2 would have 58.5 %. "
            "Uniform guessing: 10 of 16. A threshold on the number of relevant patterns, which is "
            "linear in x along Σ_{j∈A} M_j: 0 of 16, since its best accuracies are 84.4 % in "
            "Tables 1, 3 and 5, 100 % in Table 2, and 90.6 and 95.3 % in Table 4. A ridge "
            "regression on our features after one step has 84.7 % test accuracy in Table 1. A "
            "neuron with the printed cosine .848 whose other components are random still allows "
            "about 82 % there."
        ),
        question=(
            "Was the classifier of the column One Step trained until convergence, or does it "
            "predict −1 for every input?"
        ),
        test=_TESTS + "test_one_step_accuracies_are_those_of_the_negative_class",
    ),
    Discrepancy(
        id="shi2022/table4-dimension",
        where="Table 4, cosine similarity, column RF (Appendix E.2.2)",
        observed=(
            "The printed value is the maximum over neurons of cos(w_i, Σ_{j∈A} M_j). Neurons of RF "
            "keep their Gaussian initial weights, and w_{m+i} = w_i, so it is the maximum over m = "
            "300 random directions in dimension d, for any data. At d = 500 it has mean .128 and "
            "standard deviation .017, and exceeds the printed .293 or .296 with probability below "
            "4e-9. At d = 100 it has mean .284 and standard deviation .036, and exceeds them with "
            "probability .36 and .33. The other six printed values (Tables 1, 2, 3, 5) lie within "
            "the central 95 % intervals of a single run at their d and m."
        ),
        explanation=(
            "Table 4 was run with d = 100. The cosines of One Step in Table 4, .950 and .956, are "
            "also nearer to that of Table 3 at d = 100 (.967) than to that of Table 1 (.848)."
        ),
        excluded=(
            "The class ratio: the weights do not depend on the data. Absolute values of cosines, "
            "or 2m = 600 independent directions, or an average over five runs: probability below "
            "2e-8 at d = 500. Another number of neurons: a median of .293 at d = 500 needs 6e10 "
            "directions."
        ),
        question="Was Table 4 run with input dimension d = 100 instead of 500?",
        test=_TESTS + "test_table_4_has_the_cosines_of_dimension_100",
    ),
    Discrepancy(
        id="shi2022/one-step-cosine",
        where="Tables 1 and 3, cosine similarity, column One Step",
        observed=(
            "tan² of the angle between Σ_{j∈A} M_j and the nearest neuron after step 1 grows with "
            "the input dimension: .069, .391 and 2.189 at d = 100, 500 and 2000 (cosines .967, "
            ".848, .560), about d^1.15. All inputs lie in the span of D = 100 patterns. If step 1 "
            "removes the initial weights, as λ_w⁽¹⁾ = 1/(2η⁽¹⁾) of Theorem 26 does, neurons depend "
            "on them through ⟨w_i⁽⁰⁾, M_j⟩ ~ N(0, 1/k²) only, so the distribution of the cosine is "
            "the same for every d. Ours is .999 at all three d."
        ),
        explanation=(
            "A part of the initial weights remains after step 1: w_i⁽¹⁾ = c·w_i⁽⁰⁾ + "
            "s·a_i⁽⁰⁾·Σ_{j∈A} M_j with constants c and s. Rounding errors in all d coordinates "
            "would have the same effect. With c/s such that the median at d = 500 is the printed "
            ".848, the central 95 % intervals of a single run are .948 to .979, .796 to .900 and "
            ".548 to .717 at d = 100, 500 and 2000. They contain the printed values of Tables 1 "
            "and 3, that of Table 5 at n = 25,000 (.851), and those of Table 4 (.950, .956) at d = "
            "100, not at 500. Table 2 and Table 5 at n = 10,000 have another m, for which c/s may "
            "differ."
        ),
        excluded=(
            "Sampling errors of the gradient: they lie in the span of the patterns as well, and "
            "our cosine at n = 50,000 is .999."
        ),
        question=(
            "Are the initial weights removed completely by the weight decay of step 1 in these "
            "experiments?"
        ),
        test=_TESTS + "test_one_step_angles_grow_with_the_input_dimension",
    ),
)
