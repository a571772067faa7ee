"""Programs saved to run elsewhere. Nothing is exported yet: the module is here so that its name resolves."""
