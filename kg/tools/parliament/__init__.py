"""Parliament: search, text and statistics of speeches, and their speakers."""
