"""Floor 4: pass manager, registry, pipelines, commands, Python API, reports."""
