"""What the graph is made of: its vocabulary, measured in the store, and examples of questions."""
