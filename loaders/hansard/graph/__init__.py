"""Memberships of chambers and parties derived from stored speeches."""
