"""What all domains share to answer a request: filters, ranking, evidence, fuzzy names and result models."""
