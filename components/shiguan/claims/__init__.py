"""Answer -> claims -> evidence -> verdicts -> citations."""
