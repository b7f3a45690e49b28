"""What forks do to the code that the recipe edits: trees, an independent judge, and tests."""
