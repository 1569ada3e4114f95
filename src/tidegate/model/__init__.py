"""The values every room speaks. Nothing of ours is imported here, and nothing does I/O."""
