"""Zoning: municipal codes in any form, and tables of districts, uses and standards."""
