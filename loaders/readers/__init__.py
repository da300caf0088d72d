"""What every source module reads with: locations to files, files to tables, tables to ordered rows."""
