"""What is found in text: pure functions from words to spans, which know neither store nor graph.

`words` cuts text into tokens with their offsets, `inflection` knows number and stop words, `labels` turns one name of
a thing into the token sequences that it may stand in text as, and `matching` finds those of a whole set of names.
"""
