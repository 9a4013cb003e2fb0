"""The papers: one file each, which declares claims, tasks and learners and computes nothing."""

#: Modules of this package, in the order in which they are listed.
PAPERS = (
    "daniely2020",
    "shi2022",
    "malach2019",
    "glasgow2023",
    "allenzhu2019",
    "radhakrishnan2024",
)
