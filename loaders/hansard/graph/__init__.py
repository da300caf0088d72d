"""Graphs derived from stored speeches, sittings and registers of members, in the commits that change them."""
