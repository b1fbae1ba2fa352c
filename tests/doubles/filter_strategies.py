"""Strategies for Haystack's filters: comparisons of one's own fields and values, in any combination."""

from hypothesis import strategies as st


def comparisons(fields, operators, values):
    """Compare one of these fields, or what a strategy gives, by one of these operators with what a strategy gives."""
    names = fields if isinstance(fields, st.SearchStrategy) else st.sampled_from(fields)
    return st.fixed_dictionaries({"field": names, "operator": st.sampled_from(operators), "value": values})


def filters_of(*parts, least=1, max_leaves=8):
    """Combine comparisons by AND, OR and NOT, at least so many under each."""
    return st.recursive(
        st.one_of(*parts),
        lambda inner: st.fixed_dictionaries(
            {
                "operator": st.sampled_from(["AND", "OR", "NOT"]),
                "conditions": st.lists(inner, min_size=least, max_size=3),
            }
        ),
        max_leaves=max_leaves,
    )
