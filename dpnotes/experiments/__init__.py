"""Long measurements: each writes one file of results, with where and how it was measured."""
