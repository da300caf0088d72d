"""Access: who sends a request, what they may do, and the record of what they did."""
