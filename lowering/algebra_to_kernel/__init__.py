"""Match scopes to library operators and generate kernels for the rest."""
