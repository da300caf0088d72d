"""Clients of a server: their configurations, the prompts that it offers them, and skill files for coding agents."""
