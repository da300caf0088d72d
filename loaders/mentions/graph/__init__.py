"""Mentions of concepts, kept up to date with the texts and concepts in the store."""
