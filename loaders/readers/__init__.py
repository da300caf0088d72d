"""Readers that all sources share: locations to files, files to tables or HTML blocks, cells and sentences."""
