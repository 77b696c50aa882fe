"""What every floor above needs, written once: errors, names, random streams, Gaussian expectations."""
