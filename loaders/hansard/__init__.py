"""Hansard: official XML of sitting days, and speeches in tables."""
