"""The data of the pages for reading: texts with the marks in them, and the people, places and concepts around them."""
