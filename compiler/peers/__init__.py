"""Other runtimes beside ours: the file each is given, how each is run and timed."""
