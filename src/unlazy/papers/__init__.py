"""Papers: one subpackage each, with claims, tasks and learners."""

#: Subpackages, in the order in which they are listed.
PAPERS = (
    "daniely2020",
    "shi2022",
    "malach2019",
    "glasgow2023",
    "allenzhu2019",
    "radhakrishnan2024",
)
