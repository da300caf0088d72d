"""Files: a folder of notes, pages, specifications and PDFs, one record per file."""
