"""Floor 3: transformations and searches, and the analyses they share."""
