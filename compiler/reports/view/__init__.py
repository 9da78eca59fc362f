"""A report of `optimize` as a page that explains itself: `isoform view`."""
