"""The papers: one file each, which declares claims, tasks and learners and computes nothing."""

#: Modules of this package, in the order in which they are listed.
PAPERS = ("shi2022", "glasgow2023", "malach2019")
