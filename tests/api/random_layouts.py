"""Random layouts and coordinates, as (shape, stride) trees of tuples and ints.

    rng = random.Random(1)
    layout(rng)                 ((4, (2, 3)), (6, (1, 2)))
    text(layout)                "(4,(2,3)):(6,(1,2))"
    parse("(4,2):(1,8)")        ((4, 2), (1, 8))

Strides are of the kinds that occur: compact in some order, padded, with repeats (0), or anything
small; so operations meet arguments that fit each other often and arguments that do not sometimes.
"""

import ast

EXTENTS = (1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 8, 8, 9, 12, 16)


def text(layout):
    shape, stride = layout
    return f"{tree_text(shape)}:{tree_text(stride)}"


def tree_text(tree):
    if isinstance(tree, tuple):
        return "(" + ",".join(tree_text(part) for part in tree) + ")"
    return str(tree)


def parse_tree(words):
    """`(4)` is a tuple of one here, which Python writes `(4,)`."""
    return ast.literal_eval(words.replace(")", ",)").replace("(,", "("))


def parse(words):
    if words == "invalid":
        return None
    shape, stride = words.split(":")
    return parse_tree(shape), parse_tree(stride)


def leaves(tree):
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def like(tree, numbers):
    """The tree with its leaves replaced, in order, by what the iterator gives."""
    if isinstance(tree, tuple):
        return tuple(like(part, numbers) for part in tree)
    return next(numbers)


def product(numbers):
    out = 1
    for number in numbers:
        out *= number
    return out


def size(layout):
    return product(leaves(layout[0]))


def shape(rng, leaves_max=4, bare=True):
    """A tree of at most `leaves_max` extents."""
    count = rng.randint(1, leaves_max)
    parts = [rng.choice(EXTENTS) for _ in range(count)]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        begin = rng.randrange(len(parts))
        end = rng.randint(begin + 1, len(parts))
        parts[begin:end] = [tuple(parts[begin:end])]
    if len(parts) == 1 and bare and rng.random() < 0.7:
        return parts[0]
    return tuple(parts)


def strides(rng, extents):
    order = list(range(len(extents)))
    rng.shuffle(order)
    kind = rng.random()
    if kind < 0.25:
        return [rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)) for _ in extents]
    if kind < 0.5:
        order.sort()
    out = [0] * len(extents)
    stride = 1
    for i in order:
        if rng.random() < 0.25:
            stride *= rng.choice((2, 3, 4))
        out[i] = 0 if rng.random() < 0.08 else stride
        stride *= extents[i]
    return out


def layout(rng, leaves_max=4, bare=True):
    tree = shape(rng, leaves_max, bare)
    return tree, like(tree, iter(strides(rng, leaves(tree))))


def negated(rng, one):
    """Some strides of it made negative."""
    return one[0], like(one[1], (d if rng.random() < 0.5 else -d for d in leaves(one[1])))


def fitting(rng, count, leaves_max=3):
    """A layout that picks some of [0, count): extents and strides from the divisors of what is left."""
    parts = []
    left = count
    stride = 1
    for _ in range(rng.randint(1, leaves_max)):
        skip = rng.choice([d for d in range(1, left + 1) if left % d == 0])
        if rng.random() < 0.5:
            stride, left = stride * skip, left // skip
        extent = rng.choice([d for d in range(1, left + 1) if left % d == 0])
        parts.append((extent, stride))
        stride, left = stride * extent, left // extent
    rng.shuffle(parts)
    if len(parts) == 1:
        return parts[0]
    return tuple(e for e, _ in parts), tuple(d for _, d in parts)


def argument(rng, one):
    """A second argument for a layout: mostly one that fits its size."""
    count = size(one)
    if rng.random() < 0.75 and count <= 4096:
        return fitting(rng, count)
    return layout(rng, 2)


def multiplier(rng, one, reach_max=1 << 15):
    """A layout to repeat `one` by, so small that the product can be checked by brute force."""
    while True:
        two = layout(rng, 2)
        last = sum((e - 1) * d for e, d in zip(leaves(two[0]), leaves(two[1])))
        if size(one) * (last + 1) <= reach_max:
            return two
        if size(one) * 2 > reach_max:
            return 1, 0


def modes(one):
    """The modes of a layout, as layouts."""
    if isinstance(one[0], tuple):
        return list(zip(one[0], one[1]))
    return [one]


def tiler(rng, one):
    """A layout for each of some first modes of it."""
    parts = modes(one)
    return [argument(rng, part) for part in parts[: rng.randint(1, len(parts))]]


def joined(parts):
    """The layout with these modes."""
    return tuple(part[0] for part in parts), tuple(part[1] for part in parts)
