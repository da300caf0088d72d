"""Queries in killable worker processes over snapshots of the store: admission, dispatch and results."""
