"""The command line, `kg`: one module for each group of commands."""
