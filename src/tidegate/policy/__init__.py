"""Policy: rule grammar, index, layers, decide, explain, diff. Pure: loaders take text."""
