"""Search for passages, and fetch them verbatim with everything needed to cite them."""
