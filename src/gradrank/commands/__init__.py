"""What the commands do, a module each; `gradrank.cli` parses and calls them."""
