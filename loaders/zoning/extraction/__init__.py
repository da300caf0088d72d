"""Extraction of facts from the text of sections: pure functions that return offsets, without store or graph."""
