"""The tools of those who run a server: loads."""
