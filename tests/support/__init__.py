"""What the tests of whole models share. Found through `pythonpath = ["tests"]` in pyproject."""
