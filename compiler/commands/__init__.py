"""What each subcommand of `isoform` does, and how the commands read their arguments."""
