"""Reports: tables, figures and pages, made from records only."""
