"""Training and measuring of the judge: what reads a claim and a passage together."""
