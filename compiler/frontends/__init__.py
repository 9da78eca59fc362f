"""Where programs come from: IR text, files by name, models of the zoo, torch modules."""
