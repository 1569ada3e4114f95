"""Small checks, one a file: each tries what it is about, and names the fix."""
