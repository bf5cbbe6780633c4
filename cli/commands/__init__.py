"""The subcommands of `rewrite`, a module each, imported only when they are called."""
