#!/usr/bin/env python3
"""Proves that the comparison with pycute can fail: wrong answers break the laws and are reported."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import laws  # noqa: E402
import pycute_test as test  # noqa: E402
import random_layouts as some  # noqa: E402


def read(text):
    return some.parse(text)


class Laws(unittest.TestCase):
    def holds(self, law, *texts):
        return law(*[read(text) if ":" in str(text) else text for text in texts])

    def test_composition(self):
        a, b = "(6,2):(8,2)", "(4,3):(3,1)"
        self.assertTrue(self.holds(laws.composition, a, b, "((2,2),3):((24,2),8)"))
        self.assertFalse(self.holds(laws.composition, a, b, "((2,2),3):((24,2),7)"))
        self.assertFalse(self.holds(laws.composition, a, b, "((2,2),2):((24,2),8)"))
        self.assertFalse(self.holds(laws.composition, a, b, "(3,(2,2)):(8,(24,2))"))

    def test_complement(self):
        self.assertTrue(self.holds(laws.complement, "4:2", 24, "(2,3):(1,8)"))
        for wrong in ("(2,2):(1,8)", "(3,2):(8,1)", "6:1", "(2,3):(1,9)", "(2,0):(1,8)"):
            self.assertFalse(self.holds(laws.complement, "4:2", 24, wrong), wrong)

    def test_inverses(self):
        self.assertTrue(self.holds(laws.right_inverse, "(4,8):(8,1)", "(8,4):(4,1)"))
        self.assertFalse(self.holds(laws.right_inverse, "(4,8):(8,1)", "(4,8):(4,1)"))
        self.assertTrue(self.holds(laws.left_inverse, "4:2", "(2,4):(4,1)"))
        self.assertFalse(self.holds(laws.left_inverse, "4:2", "4:1"))
        self.assertFalse(self.holds(laws.left_inverse, "(4,8):(0,1)", "1:0"))

    def test_divide_and_product(self):
        a, tile = "(4,2,3):(2,1,8)", "4:2"
        self.assertTrue(self.holds(laws.logical_divide, a, tile, "((2,2),(2,3)):((4,1),(2,8))"))
        self.assertFalse(self.holds(laws.logical_divide, a, tile, "((2,2),(3,2)):((4,1),(8,2))"))
        self.assertFalse(self.holds(laws.logical_divide, a, tile, "((2,2),(2,2)):((4,1),(2,8))"))
        a, copies = "(2,2):(4,1)", "6:1"
        self.assertTrue(self.holds(laws.logical_product, a, copies, "((2,2),(2,3)):((4,1),(2,8))"))
        self.assertFalse(self.holds(laws.logical_product, a, copies, "((2,2),6):((4,1),8)"))
        self.assertFalse(self.holds(laws.logical_product, "(2,2):(1,1)", "2:1",
                                    "((2,2),2):((1,1),3)"))


class Comparison(unittest.TestCase):
    def counts(self, name, theirs, words, check):
        return dict(test.compare([(name, "line", theirs, check)], [words])[name])

    def test_a_wrong_answer_is_a_disagreement(self):
        for name, theirs, words in (
            ("coalesce", read("12:1"), "12:2"),
            ("coalesce", read("12:1"), "invalid"),
            ("filter", None, "12:2"),
            ("right_inverse", read("(8,4):(4,1)"), "(8,4):(4,2)"),
            ("slice", (read("(4):(1)"), 8), "(4):(1) 9"),
            ("index", 7, "8"),
            ("idx2crd", (1, 2), "2,1"),
            ("sizes", (1, 4, 4), "1,4,5"),
        ):
            check = (None, ()) if name == "sizes" else (lambda answer: name == "coalesce")
            told = self.counts(name, theirs, words, check)
            self.assertEqual(told, {"DISAGREE": 1}, name)

    def test_designs_need_their_law(self):
        refused = lambda answer: False  # noqa: E731
        accepted = lambda answer: True  # noqa: E731
        one = read("4:1")
        self.assertEqual(self.counts("composition", None, "4:1", accepted), {"we-answer": 1})
        self.assertEqual(self.counts("composition", None, "4:1", refused), {"DISAGREE": 1})
        self.assertEqual(self.counts("composition", one, "invalid", refused), {"we-refuse": 1})
        self.assertEqual(self.counts("composition", one, "invalid", accepted), {"DISAGREE": 1})
        many = ((1,) * 17, (1,) * 17)
        self.assertEqual(self.counts("same_", many, "invalid", accepted), {"too-many-leaves": 1})
        self.assertEqual(self.counts("coalesce", read("1:7"), "1:0", refused), {"unused-stride": 1})
        self.assertEqual(self.counts("coalesce", read("2:7"), "2:0", refused), {"DISAGREE": 1})
        self.assertEqual(self.counts("coalesce", one, "4:1", refused), {"same": 1})


class Texts(unittest.TestCase):
    def test_round_trip(self):
        rng = random.Random(1)
        for _ in range(1000):
            one = some.layout(rng)
            self.assertEqual(some.parse(some.text(one)), one)
        self.assertEqual(some.parse("((4)):((1))"), (((4,),), ((1,),)))
        self.assertIsNone(some.parse("invalid"))


if __name__ == "__main__":
    unittest.main()
