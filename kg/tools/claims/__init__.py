"""Review of claims: accept or reject statements extracted from text."""
