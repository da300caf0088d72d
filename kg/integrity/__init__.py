"""Integrity of stored data: detection of damage, repair, and verified backups.

To inspect is to read for damage: all indexes (`kg.integrity.permutations`), the hashes in ``graph/prov``, the dataset
shapes and, in a folder of backups, the checksums of its files. To repair is to make data right again from undamaged
data: a store is rebuilt from the indexes that can be read, graphs are inferred again, and the search index is updated.

A store is read in confined processes (`inspection_child`, and `copy_child` for a rebuild): a damaged block can make the
engine take memory without bound.
"""
