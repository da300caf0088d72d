"""Integrity of stored data: detection of damage, repair, and verified backups.

Damage is found by reading (`kg.integrity.permutations`), by the hashes in ``graph/prov``, by the dataset shapes and, in
a backup, by the checksums of its files. Everything is read in a confined process (`kg.integrity.child`): a damaged
block can make the engine take memory without bound.
"""
