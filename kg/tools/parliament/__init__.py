"""Parliament: speeches found, read and counted, and who gives them."""
