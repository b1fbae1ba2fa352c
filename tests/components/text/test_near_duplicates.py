from shiguan.text.near_duplicates import shingles, similarity


def test_scripts_and_case_do_not_matter():
    assert similarity(shingles("安祿山反於范陽"), shingles("安禄山反于范阳")) == 1.0
    assert similarity(shingles("The Old General"), shingles("the old general!")) == 1.0


def test_similarity_is_shared_runs_by_all_runs():
    # "a b c d" has the runs abc, bcd; "a b c e" has abc, bce: one shared of three.
    assert similarity(shingles("alpha beta gamma delta"), shingles("alpha beta gamma omega")) == 1 / 3


def test_texts_without_terms_compare_by_their_characters():
    assert similarity(shingles("！！"), shingles("！！")) == 1.0
    assert similarity(shingles("！！"), shingles("？？")) == 0.0
