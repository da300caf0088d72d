"""Clients of remote services, at addresses that a setting or an argument names."""
