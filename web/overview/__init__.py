"""The first page: is my data safe, is anything happening, what should I do."""
