"""Derived graphs, and the engine that keeps them current: due inputs, batches, resumption after a kill."""
