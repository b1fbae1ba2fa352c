"""Tools and the loop that uses them."""
