"""One module a question; each has `board()`."""
