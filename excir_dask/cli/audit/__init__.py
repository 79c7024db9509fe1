"""The commands of ``excir audit``, a module per command."""
