"""Review of claims: accept or reject what was extracted from text."""
