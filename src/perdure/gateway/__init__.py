"""The HTTP edge: it decodes, calls one operation, encodes. `routes` is the table of all that it answers."""
