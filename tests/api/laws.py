"""The postconditions of the operations, by brute force: which of two answers is right.

    composition(((4, 2), (1, 8)), (2, 2), ((2,), (2,)))     True: 0 and 2 are where 0 and 1 should be

Every function gets the arguments and a layout, and says whether that layout is an answer. Layouts are
(shape, stride) trees; nothing of the implementations under comparison is used.
"""

from random_layouts import leaves, modes, product, size

SIZE_MAX = 1 << 16  # larger answers are not looked at, and so count as wrong


def index(layout, i):
    """The index of a linear coordinate; the last extent keeps counting."""
    extents, strides = leaves(layout[0]), leaves(layout[1])
    sign, i = (-1, -i) if i < 0 else (1, i)
    out = 0
    for extent, stride in zip(extents[:-1], strides[:-1]):
        out += i % extent * stride
        i //= extent
    return sign * (out + i * strides[-1])


def image(layout):
    return [index(layout, i) for i in range(size(layout))]


def small(layout):
    return 0 < size(layout) <= SIZE_MAX and all(e > 0 for e in leaves(layout[0]))


def injective(layout):
    all_indices = image(layout)
    return len(set(all_indices)) == len(all_indices)


def without_repeats(layout):
    extents = [e if d else 1 for e, d in zip(leaves(layout[0]), leaves(layout[1]))]
    return tuple(extents), tuple(leaves(layout[1]))


def sizes_of_modes(layout):
    return [product(leaves(part)) for part in layout[0]] if isinstance(layout[0], tuple) else []


def composition(a, b, answer):
    """answer(c) is a(b(c)) where b(c) is a coordinate of a; past that nothing is promised."""
    if not small(answer) or size(answer) != size(b):
        return False
    if sizes_of_modes(b) and sizes_of_modes(answer) != sizes_of_modes(b):
        return False
    inside = (c for c in range(size(b)) if 0 <= index(b, c) < size(a))
    return all(index(answer, c) == index(a, index(b, c)) for c in inside)


def complement(layout, target, answer):
    """Ascending, and with the layout's indices each of an interval of at least `target` once."""
    if not small(answer) or size(layout) * size(answer) > SIZE_MAX:
        return False
    others = image(answer)
    sums = sorted(a + b for a in set(image(layout)) for b in others)
    return others == sorted(set(others)) and len(sums) >= target and sums == list(range(len(sums)))


def right_inverse(layout, answer):
    return small(answer) and all(index(layout, index(answer, i)) == i for i in range(size(answer)))


def left_inverse(layout, answer):
    if min(leaves(answer[0])) < 1:
        return False
    exact = injective(layout)
    for i in range(size(layout)):
        back = index(answer, index(layout, i))
        if not 0 <= back < size(layout) or index(layout, back) != index(layout, i):
            return False
        if exact and back != i:
            return False
    return True


def logical_divide(layout, tiler, answer):
    """(layout o tiler, layout o R) for an R that complements the tiler in [0, size)."""
    parts = modes(answer)
    if len(parts) != 2 or not small(answer) or not composition(layout, tiler, parts[0]):
        return False
    rest = fill(tiler, size(layout))
    if rest is None or size(parts[1]) != len(rest):
        return False
    inside = (j for j, i in enumerate(rest) if i < size(layout))
    return all(index(parts[1], j) == index(layout, rest[j]) for j in inside)


def fill(layout, target):
    """The shifts, ascending, that make the layout's indices tile [0, target) and whole tiles past
    it: the smallest number not yet reached, again and again. None when they cannot."""
    mine = sorted(set(image(layout)))
    if mine[0] < 0:
        return None
    reached, shifts = set(), []
    at = 0
    while at < target or len(reached) > at:
        if at not in reached:
            if at >= 4 * max(target, mine[-1] + 1):
                return None
            new = {at + i for i in mine}
            if reached & new:
                return None
            reached |= new
            shifts.append(at)
        at += 1
    return shifts


def logical_product(layout, tiler, answer):
    """(layout, R o tiler) for an R that complements the layout, which may repeat itself (stride 0)
    but not overlap."""
    parts = modes(answer)
    if not injective(without_repeats(layout)) or len(parts) != 2 or parts[0] != layout or size(parts[1]) != size(tiler):
        return False
    indices = image(tiler)
    target = size(layout) * (max(indices) + 1)
    rest = fill(layout, target) if target <= SIZE_MAX else None
    if rest is None or max(indices) >= len(rest):
        return False
    return image(parts[1]) == [rest[i] for i in indices]
