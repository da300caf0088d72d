"""Languages of texts whose source states none: that of their jurisdiction, or detected in the text."""
