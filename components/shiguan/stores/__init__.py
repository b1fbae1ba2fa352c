"""Where passages are kept and found."""
