"""One file a kind of figure. Each has a function that takes the run's Context and adds measures to its results."""
