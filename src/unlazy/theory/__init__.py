"""Numbers from theorems."""
