"""The tools `list_resources` and `health`."""
