"""The API of `tidegate serve`: what a person's tools and the portal ask of it, over HTTP (SRV-1, SRV-2)."""
