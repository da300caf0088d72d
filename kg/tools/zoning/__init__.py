"""Municipal codes: what they permit, which dimensions hold, what their sections say and cite, and their summaries."""
