"""Sharding rules: their notation, their checks, and how they are written for the compiler."""

import pytest

from gradix._stablehlo.sharding_rules import shaped
from gradix.experimental.custom_partitioning_sharding_rule import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    str_to_sdy_sharding_rule,
)

TEXTS = [
    (
        "i k, k j -> i j",
        {"reduction_factors": ("k",)},
        ([(2, 3), (3, 4)], [(2, 4)]),
        "([i, j], [j, k])->([i, k]) {i=2, j=3, k=4} reduction={j}",
    ),
    (
        "... i j, ... j k -> ... i k",
        {},
        ([(2, 3, 4, 5), (2, 3, 5, 6)], [(2, 3, 4, 6)]),
        "([i, j, k, l], [i, j, l, m])->([i, j, k, m]) {i=2, j=3, k=4, l=5, m=6}",
    ),
    ("(h d) j -> h d j", {}, ([(8, 3)], [(2, 4, 3)]), "([ij, k])->([i, j, k]) {i=2, j=4, k=3}"),
    ("(a b) -> (b a)", {"a": 2, "b": 4}, ([(8,)], [(8,)]), "([ij])->([ji]) {i=2, j=4}"),
    (
        "... i -> ... i",
        {"need_replication_factors": ("i",)},
        ([(4,)], [(4,)]),
        "([i])->([i]) {i=4} need_replication={i}",
    ),
    (
        "...1 i, ...2 j -> ...1 i",
        {"permutation_factors": ("j",)},
        ([(2, 4), (5,)], [(2, 4)]),
        "([i, j], [k])->([i, j]) {i=2, j=4, k=5} permutation={k}",
    ),
    (",i->i,", {}, ([(), (3,)], [(3,), ()]), "([], [i])->([i], []) {i=3}"),
    ("i -> i", {}, ([(8,)], [(4,)]), "([i])->([i]) {i=4}"),
]


@pytest.mark.parametrize("rule, kinds, shapes, text", TEXTS)
def test_as_the_compiler_reads_them(rule, kinds, shapes, text):
    assert shaped(str_to_sdy_sharding_rule(rule, **kinds), *shapes).text() == f"#sdy.op_sharding_rule<{text}, custom>"


def test_more_factors_than_letters():
    names = " ".join(f"f{k}" for k in range(20))
    text = shaped(str_to_sdy_sharding_rule(f"{names} -> f19"), [(1,) * 20], [(1,)]).text()
    assert ", z, z_1, z_2])->([z_2])" in text


def test_a_mapped_axis_comes_first():
    rule = shaped(str_to_sdy_sharding_rule("i, batch0 -> i", permutation_factors=("i",)), [(2,), (3,)], [(2,)])
    assert (
        rule.batched(5, (True, False)).text()
        == "#sdy.op_sharding_rule<([i, j], [k])->([i, j]) {i=5, j=2, k=3} permutation={j}, custom>"
    )
    assert rule.batched(5, (True, False)).batched(7, (False, True)).text() == (
        "#sdy.op_sharding_rule<([i, j], [k, l])->([k, i, j]) {i=5, j=2, k=7, l=3} permutation={j}, custom>"
    )


def test_objects_and_text_say_the_same():
    made = SdyShardingRule((ArrayMapping(BATCHING, CompoundFactor("a", "b")),), (ArrayMapping(BATCHING, "a"),), b=3)
    read = str_to_sdy_sharding_rule("... (a b) -> ... a", b=3)
    shapes = [(2, 12)], [(2, 4)]
    assert shaped(made, *shapes).text() == shaped(read, *shapes).text()
    assert repr(read) == "SdyShardingRule((('…0', ('a', 'b')),), (('…0', 'a'),), {'b': 3})"


@pytest.mark.parametrize(
    "rule, kinds, match",
    [
        ("i", {}, "no ->"),
        ("i->j->k", {}, "no ->"),
        ("(i->i", {}, "not balanced"),
        ("i)->i", {}, "not balanced"),
        ("(i, j)->i", {}, "not balanced"),
        ("(i)->i", {}, "at least two"),
        ("((i j) k)->i", {}, "one level"),
        ("i*->i", {}, r"'\*'"),
        ("1i->i", {}, "start with a letter.*'1'"),
        ("i ...->i", {}, "at the beginning"),
        ("(... i)->i", {}, "at the beginning"),
        ("....->i", {}, "inside ellipsis"),
        ("…->i", {}, "'…'"),
        ("(i j)->i", {}, "j is only used in compound.*j=8"),
        ("i->i", {"i": 2}, "whole dimension"),
        ("i->i", {"z": 2}, "z is not used"),
        ("i j->i", {"reduction_factors": "j"}, "must be a tuple"),
        ("i j->i", {"reduction_factors": ("j", "j")}, "duplicated"),
        ("i j->i", {"reduction_factors": ("j",), "permutation_factors": ("j",)}, "only be in one"),
        ("i j->i", {"reduction_factors": ("q",)}, "factors are i, j"),
    ],
)
def test_what_is_no_rule(rule, kinds, match):
    with pytest.raises(ValueError, match=match):
        str_to_sdy_sharding_rule(rule, **kinds)


@pytest.mark.parametrize(
    "rule, kinds, shapes, match",
    [
        ("i->i", {}, ([(2,), (2,)], [(2,)]), "1 operands, but the operation has 2"),
        ("i->i,i", {}, ([(2,)], [(2,)]), "2 results, but the operation has 1"),
        ("i j->i", {}, ([(2,)], [(2,)]), r"rank 2.*rank 1: \('i', 'j'\) for the shape \(2,\)"),
        ("(a b)->(b a)", {"a": 2, "b": 3}, ([(8,)], [(8,)]), "size 8.*size 6"),
        ("... i, ... j->...", {}, ([(2, 3), (2, 2, 3)], [(2,)]), "number of leading dimensions 1 and 2"),
        ("i i->i", {}, ([(2, 2)], [(2,)]), "factor i twice"),
        ("i j->i", {"reduction_factors": ("i",)}, ([(2, 3)], [(2,)]), "only in operands"),
    ],
)
def test_what_is_no_rule_of_an_operation(rule, kinds, shapes, match):
    with pytest.raises(ValueError, match=match):
        shaped(str_to_sdy_sharding_rule(rule, **kinds), *shapes)


def test_factors_are_names():
    for make, match in (
        (lambda: CompoundFactor("a"), "at least two"),
        (lambda: CompoundFactor("a", 3), "must be a str"),
        (lambda: CompoundFactor("a", BATCHING), "Ellipsis"),
        (lambda: ArrayMapping("i", BATCHING), "at the beginning"),
        (lambda: ArrayMapping(3), "str or CompoundFactor"),
        (lambda: ArrayMapping("a b"), "Unknown character"),
        (lambda: ArrayMapping("_a"), "start with a letter"),
    ):
        with pytest.raises(ValueError, match=match):
            make()
    with pytest.raises(TypeError, match="str to int"):
        str_to_sdy_sharding_rule("(i j)->i", j=2.5)
    with pytest.raises(TypeError, match="must be a str"):
        str_to_sdy_sharding_rule(None)
