"""What the kernels of attention are run with: (kernel, shape, defines, options), and what is done wrong in them."""

import itertools

SCORES = "s[b,h,i,j] = sum[d](q[b,i,h,d] * k[b,j,h / (H / HK),d]); "
CAPPED = f"{SCORES}t[b,h,i,j] = tanh(s[b,h,i,j] * scale / soft_cap); "


def seen_of(defines):
    """Which keys j query i sees, as a condition; "" for all."""
    conditions = (
        ("CAUSAL", "j <= i + T - S"),
        ("RIGHT", "j <= i + T - S + right"),
        ("LEFT", "j >= i + T - S - left"),
    )
    return " && ".join(condition for name, condition in conditions if defines.get(name) == "true")


def chosen(seen, value, other):
    return f"{seen} ? {value} : {other}" if seen else value


def attention(defines):
    seen, capped = seen_of(defines), "SOFT_CAP" in defines
    score, factor = ("t[b,h,i,j]", "soft_cap") if capped else ("s[b,h,i,j]", "scale")
    # What a kernel takes scores less need not be the largest of them. So no weight is 1 here, which would be exact: each is rounded.
    weight = f"exp(({score} - top[b,h,i]) * {factor} + 1)"
    return (
        f"{CAPPED if capped else SCORES}top[b,h,i] = max[j]({chosen(seen, score, '-inf')}); "
        f"p[b,h,i,j] = {chosen(seen, weight, 0)}; l[b,h,i] = sum[j](p[b,h,i,j]); "
        "o[b,i,h,d] = l[b,h,i] > 0 ? sum[j](p[b,h,i,j] * v[b,j,h / (H / HK),d]) / l[b,h,i] : 0; "
        f"lse[b,h,i] = l[b,h,i] > 0 ? top[b,h,i] * {factor} + log(l[b,h,i]) - 1 : -inf"
    )


CAUSAL_ATTENTION = attention(dict(CAUSAL="true"))
# Heads of 64, 128 and 256; room for the queries of two items or of one, and for results.
ATTENTIONS = (
    dict(),
    dict(TOGETHER=2, FEW=2),
    dict(D=64, CONSUMERS=3),
    dict(D=64, DTYPE="f16", STAGES=3, TILE=192),
    dict(TILE=176, AHEAD=1, APART="false"),
    dict(D=256, TILE=80, AHEAD=1, APART="false", SPARE="true", TURNS="false"),
    dict(D=64, DRAWN="true", KEYS_TOGETHER=1000),
    dict(SPARE="true", TURNS="false"),
    dict(D=64, TILE=80, AHEAD=1, APART="false", SPARE="true", DRAWN="true"),
    dict(CLUSTER=2, TURNS="false", BLOCKS=4),
    dict(D=256, TILE=80, AHEAD=1, APART="false", SPARE="true", CLUSTER=2, BLOCKS=4),
    dict(TILE=192, AHEAD=1, APART="false", CLUSTER=2, BLOCKS=4),
)
# One tile of keys, as many as tiles, and more; items that some blocks have one more of; queries that see nothing. Of scores as
# large as those of a scale of 1.5 later tiles have larger ones by so much that what was summed up is taken to a new largest.
ATTENTION_SHAPES = (
    dict(B=1, S=64, T=64, H=1, HK=1),
    dict(B=2, S=340, T=420, H=4, HK=2),
    dict(B=1, S=500, T=500, H=3, HK=1, scale=1.5),
    dict(B=1, S=130, T=700, H=2, HK=2, scale=1.5),
    dict(B=1, S=1, T=300, H=5, HK=5),
    dict(B=1, S=333, T=170, H=2, HK=1),
)


def forward_cases():
    for defines, causal, shape in itertools.product(ATTENTIONS, (False, True), ATTENTION_SHAPES):
        defines = dict(BLOCKS=3) | defines | dict(CAUSAL=str(causal).lower())
        options = ("--expect", attention(defines))
        if "DRAWN" in defines:
            options = (*options, "--check", "full")  # a sample of what the program says, which is nothing, leaves elements out
        yield "attention_sm90", dict(scale=0.088) | shape, defines, options


# Depths whose rows are no multiple of 128 bytes, and values of another depth than keys.
DEPTHS = (
    dict(D=96),
    dict(D=96, DTYPE="f16", CAUSAL="true"),
    dict(D=192, DV=128, TILE=112, AHEAD=1),
    dict(D=192, TILE=112, AHEAD=1, APART="false", CAUSAL="true"),
)
# A window that ends within a tile on both sides, in one tile on both, a diagonal, none on one side, and a causal one.
WINDOWS = (
    dict(left=130, right=40),
    dict(left=17, right=20),
    dict(left=0, right=0),
    dict(left=100),
    dict(right=5),
    dict(left=64, causal=True),
)
OF_WINDOWS = (dict(D=64, TILE=64), dict(D=64, CONSUMERS=3, TILE=192, STAGES=3, DTYPE="f16"), dict(SPARE="true", AHEAD=1))


def windowed(defines, window):
    """The kernel's defines and numbers with a window."""
    numbers = {name: width for name, width in window.items() if name != "causal"}
    causal = dict(CAUSAL="true") if window.get("causal") else {}
    return defines | {name.upper(): "true" for name in numbers} | causal, numbers


def option_cases():
    """Depths, windows and soft caps."""
    for defines, shape in itertools.product(DEPTHS, ATTENTION_SHAPES[1:4]):
        defines = defines | dict(BLOCKS=3)
        yield "attention_sm90", dict(scale=0.088) | shape, defines, ("--expect", attention(defines))
    for defines, window, shape in itertools.product(OF_WINDOWS, WINDOWS, ATTENTION_SHAPES):
        capped = shape["S"] % 4 == 0
        defines, numbers = windowed(defines | dict(BLOCKS=3), window)
        if capped:
            defines, numbers = defines | dict(SOFT_CAP="true"), numbers | dict(soft_cap=1.5)
        yield "attention_sm90", dict(scale=0.088) | shape | numbers, defines, ("--expect", attention(defines))
    for window, shape in itertools.product((dict(right=5), dict(right=150)), ATTENTION_SHAPES[1:]):  # of a cluster's blocks
        defines, numbers = windowed(dict(D=64, TILE=64, CLUSTER=2, BLOCKS=4), window)
        yield "attention_sm90", dict(scale=0.088) | shape | numbers, defines, ("--expect", attention(defines))


def gradients(defines):
    """What the kernel of attention's gradients computes of an o and an lse that need not be those of q, k and v."""
    capped = "SOFT_CAP" in defines
    score, growth = ("t[b,h,i,j] * soft_cap", " * (1 - t[b,h,i,j] * t[b,h,i,j])") if capped else ("s[b,h,i,j] * scale", "")
    weight = chosen(seen_of(defines), f"exp({score} - lse[b,h,i])", 0)
    of_head = "h * HK >= g * H && h * HK < g * H + H ?"
    return (
        f"{CAPPED if capped else SCORES}p[b,h,i,j] = {weight}; "
        "dp[b,h,i,j] = sum[d](dout[b,i,h,d] * v[b,j,h / (H / HK),d]); delta[b,h,i] = sum[d](o[b,i,h,d] * dout[b,i,h,d]); "
        f"ds[b,h,i,j] = p[b,h,i,j] * (dp[b,h,i,j] - delta[b,h,i]){growth}; "
        "dq[b,i,h,d] = scale * sum[j](ds[b,h,i,j] * k[b,j,h / (H / HK),d]); "
        f"dk[b,j,g,d] = scale * sum[h,i]({of_head} ds[b,h,i,j] * q[b,i,h,d] : 0); "
        f"dv[b,j,g,d] = sum[h,i]({of_head} p[b,h,i,j] * dout[b,i,h,d] : 0)"
    )


GRADIENTS = (
    dict(),
    dict(DTYPE="f16", QUERY_TILE=32, KEY_TILE=64, STAGES=3),
    dict(D=64, QUERY_TILE=96),
    dict(D=256, HALVES="true", KEY_TILE=48),
    dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, CLUSTER=2),
    dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, EARLY="true"),
    dict(D=64, HALVES="true", DTYPE="f16", CLUSTER=2, EARLY="true", STAGES=3),
    dict(D=64, CLUSTER=2, STAGES=3),
    dict(DETERMINISTIC="false"),
    dict(D=64, QUERY_TILE=128, DTYPE="f16", DETERMINISTIC="false"),
    dict(D=64, STAGES=3, DETERMINISTIC="false"),
)
# Tiles that are full, and that are not; heads that share; queries that see nothing; one query.
GRADIENT_SHAPES = (
    dict(B=1, S=128, T=128, H=1, HK=1),
    dict(B=2, S=70, T=140, H=2, HK=1),
    dict(B=1, S=150, T=70, H=3, HK=1),
    dict(B=1, S=1, T=200, H=2, HK=2),
)


# Depths whose rows are no multiple of 128 bytes; windows that end within tiles, and of which no query sees some tiles.
OPTIONS_OF_GRADIENTS = (
    (dict(D=96), {}),
    (dict(D=96, CAUSAL="true", DTYPE="f16"), {}),
    (dict(D=64), dict(left=20, right=9)),
    (dict(D=64, CAUSAL="true"), dict(left=70)),
    (dict(D=64, KEY_TILE=64), dict(left=0, right=0)),
    (dict(D=64, KEY_TILE=64), dict(left=30)),
    (dict(D=64), dict(right=70)),
    (dict(D=64), dict(soft_cap=1.5)),
    (dict(D=64, CAUSAL="true"), dict(left=30, soft_cap=0.5)),
    (dict(D=256, HALVES="true", KEY_TILE=48), dict(left=30, right=5, soft_cap=2)),
    (dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, EARLY="true", CAUSAL="true"), dict(left=70, soft_cap=0.5)),
    (dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1, CLUSTER=2), dict(soft_cap=1.5)),
    (dict(D=256, HALVES="true", KEY_TILE=64, VALUE_STAGES=1), dict(right=70)),
    (dict(D=64, QUERY_TILE=128, DETERMINISTIC="false"), dict(left=30, right=5, soft_cap=1.5)),
    (dict(D=128, CAUSAL="true", DETERMINISTIC="false"), dict(left=70)),
    (dict(D=128, DETERMINISTIC="false"), dict(right=70)),
    (dict(D=64, CLUSTER=2), dict(left=20, right=9)),
    (dict(D=64, CLUSTER=2, KEY_TILE=64), dict(left=30)),
    (dict(D=64, CLUSTER=2), dict(right=150)),
    (dict(D=64, CAUSAL="true", CLUSTER=2), dict(left=70, soft_cap=0.5)),
)


def backward_cases():
    kernel = "attention_backward_sm90"
    for defines, causal, shape in itertools.product(GRADIENTS, (False, True), GRADIENT_SHAPES):
        defines = defines | dict(CAUSAL=str(causal).lower())
        yield kernel, shape | dict(scale=0.088), defines, ("--expect", gradients(defines))
    for (defines, numbers), shape in itertools.product(OPTIONS_OF_GRADIENTS, GRADIENT_SHAPES):
        defines = defines | {name.upper(): "true" for name in numbers}
        yield kernel, shape | dict(scale=0.088) | numbers, defines, ("--expect", gradients(defines))


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = {
    "attention_sm90": (
        ("wait full;\n  mma.row.row scores", "mma.row.row scores", "race"),
        ("wait full;\n  if constexpr (ACROSS)", "if constexpr (ACROSS)", "race"),
        ("wait empty;\n  if constexpr", "if constexpr", "phase-overrun"),
        ("if constexpr (TURNS) trigger turn[(w + 1) % CONSUMERS];\n  release", "release", "deadlock"),
        ("wait q_full;\n    start", "start", "race"),
        ("trigger q_empty[round % AHEAD][w];", "", "deadlock"),
        ("release<0, CLUSTER>(v_empty);", "mma.wait<0>;", "deadlock"),
        ("release<1, CLUSTER>(k_empty", "release<2, CLUSTER>(k_empty", "race"),
        ("acc = frag.fill.f32 [ROWS, DV] 0.0f;\n        weights", "weights", "result-outside"),
        ("m_before = m;", "m_before = alpha;", "result-outside"),
        ("l_before = l;", "l_before = m;", "result-outside"),
        ("n = (item.at(PLACE_TILE) * CLUSTER + rank) * CONSUMERS + w;", "n = w;", "race"),
        ("wait placed[(round + 1) % Q];", "", "race"),
        ("trigger taken[round % Q];\n        acc", "acc", "deadlock"),
        ("wait taken[round % Q];", "", "phase-overrun"),
        ("seen + w * ROWS, T, (count - 2 - n)", "seen + 1 + w * ROWS, T, (count - 2 - n)", "result-outside"),
        ("TILE) - 1)) : 0;", "TILE) - 2)) : 0;", "result-outside"),
        ("right) + 1 : T;\n        passed", "right) : T;\n        passed", "result-outside"),
        ("number - 1 - inside / 2", "number - inside / 2", "out-of-bounds"),
    ),
    "attention_sm90 of scores that grow": (
        ("if constexpr (!LATE) sum = sum * alpha;", "", "result-outside"),
        ("l *= alpha;", "", "result-outside"),
        ("__exp2f(before * c - shift) : 1.0f", "1.0f : __exp2f(before * c - shift)", "result-outside"),
        ("__min(7.9f / c, 3.0e38f)", "200.0f / c", "result-outside"),
        ("fresh <= WEIGHT_MAX", "fresh <= 3.0e38f", "result-outside"),
        ("raise<LEFT>(scores, m, alpha, c);", "", "result-outside"),
        ("sum = sum * alpha;\n      weights", "weights", "result-outside"),
        ("sum = sum * alpha;\n      weights = __to<DTYPE>(scores);", "sum = sum * alpha;", "result-outside"),
        ("    } else {\n      l += fresh;", "", "result-outside"),
    ),
    # Weights that go to two tiles of registers in turns.
    "attention_sm90 of spare weights": (
        ("advance_apart<CLUSTER, DTYPE>(s, acc, m, l, alpha, spare", "advance_apart<CLUSTER, DTYPE>(s, acc, m, l, alpha, weights", ""),
        ("acc, alpha, spare, q_s[w]", "acc, alpha, weights, q_s[w]", "result-outside"),
        ("fresh <= WEIGHT_MAX))) {\n    raise", "fresh <= 3.0e38f))) {\n    raise", "result-outside"),
        ("release<0, CLUSTER>(v_empty);\n  sum = sum * alpha;", "release<0, CLUSTER>(v_empty);", "result-outside"),
        ("alpha = frag.fill.f32 [ROWS, 1] 1.0f;\n  if", "if", "result-outside"),
        ("    next = __to<DTYPE>(scores);", "", "result-outside"),
        ("  } else {\n    l += fresh;", "", "result-outside"),
        ("SPARE ? (rest - tail) % 2 :", "SPARE ? (rest - tail) / 2 :", "deadlock"),
    ),
    "attention_sm90 drawn": (
        ("if constexpr (DRAWN) begin_draw(counter);", "", "uninitialised"),
        ("int drawn = __atomic_add(counter.at(0), 1);", "int drawn = counter.at(0); counter.at(0) = drawn + 1;", "race"),
        ("first + inside % near", "first", "race"),
        ("inside = item - first * tiles;", "inside = item;", "out-of-bounds"),
    ),
    "attention_sm90 of queries without keys": (
        ("l > 0.0f ? 1.0f / l : 0.0f", "1.0f / l", "result-outside"),
        ("__log(l.at(r)) : -inf", "__log(l.at(r)) : 0.0f", "result-outside"),
    ),
    # One item's queries at a time, in clusters of two blocks.
    "attention_sm90 in clusters": (
        ("trigger.cluster empty", "trigger empty", "race"),
        ("* CLUSTER + rank;\n    count = ", "* CLUSTER;\n    count = ", "result-outside"),
        ("add<ACROSS>(sum, weights, v_s[at % STAGES], v_full.at(at));\n    wait q", "wait q", "result-outside"),
        ("wait q_full;\n    if", "if", "race"),
        ("if constexpr (TURNS) trigger turn[(w + 1) % CONSUMERS];\n    release", "release", "deadlock"),
        ("release<1, CLUSTER>(v_empty.at(at));", "mma.wait<1>;", "deadlock"),
        ("release<0, CLUSTER>(k_empty.at(at + 1));", "mma.wait<0>;", "deadlock"),
        ("raise<HOLES, RAISED>(s, m, alpha, c);\n          weigh", "weigh", "result-outside"),
    ),
    "attention_sm90 with options": (
        ("(skipped + tail - 1 - n) * TILE", "(skipped + tail - 1 - n) * TILE - 1", "result-outside"),
        ("cdiv(passed + QUERIES - 1, TILE) - skipped", "cdiv(passed, TILE) - skipped", "result-outside"),
        ("__max(0, passed) / TILE", "__max(0, passed) / TILE + 1", "result-outside"),
        ("passed = passed_of<LEFT>(next", "passed = passed_of<LEFT>(first", "result-outside"),
        ("keys - queries + right", "keys - queries", "result-outside"),
        ("scale / soft_cap", "scale", "result-outside"),
        ("return soft_cap", "return scale", "result-outside"),
        ("cap<SOFT_CAP>(scores, scale, soft_cap);\n}", "}", "result-outside"),
    ),
    "attention_backward_sm90 with options": (
        ("if (passed + QUERY_TILE > 1)", "if (passed > 0)", "result-outside"),
        ("__index(scores, 1) + passed ?", "__index(scores, 1) + passed + 1 ?", "result-outside"),
        ("key + queries - keys + left", "key + queries - keys + left - 64", "result-outside"),
        ("LEFT ? __max(1, cdiv(end, QUERY_TILE) - first)", "LEFT ? cdiv(end, QUERY_TILE) - first", "deadlock"),
        ("if (passed + ROWS - 1 > from)", "if (passed > from)", "result-outside"),
        ("mask_front(s, passed - from)", "mask_front(s, passed - from + 1)", "result-outside"),
        ("from = (skipped + n) * KEY_TILE", "from = n * KEY_TILE", "result-outside"),
        ("s = weights * growth_of(s)", "s = weights", "result-outside"),
        ("row_lse2) * growth_of(s)", "row_lse2)", "result-outside"),
        ("at = __max(tangent, -1.0f)", "at = tangent", "result-outside"),
    ),
    "attention_backward_sm90 in any order": (
        ("release<1>(ds_empty[at % 2]);", "mma.wait<1>;", "deadlock"),
        ("tma.copy.add.swiz<0> dq_s[w]", "tma.copy.swiz<0> dq_s[w]", "race"),
        (".at(head, i * CONSUMERS + w, 0)", ".at(head, i * CONSUMERS, 0)", "result-outside"),
        (".at(j, 0, 0).sqz();", ".at(DEPTH / RUN - 1 - j, 0, 0).sqz();", "result-outside"),
        (".at(j, 0, 0).sqz();", ".at(0, 0, 0).sqz();", "uninitialised-read"),
        ("RUN : ROWS * D, RUN, ROWS * RUN, 1)", "RUN : ROWS * D, D, RUN, 1)", "result-outside"),
        ("ds_s[at % 2][each], k_s[each].subspan(ROWS, DEPTH).at(0, w)", "ds_s[at % 2][each], k_s[each].subspan(ROWS, DEPTH).at(0, 0)", "axis-unread"),
        ("scale * frag.load sums_s", "frag.load sums_s", "result-outside"),
        ("none = frag.fill.f32 [FEW, D] 0.0f;", "none = frag.fill.f32 [FEW, D] 1.0f;", "result-outside"),
        ("head += 1;", "", "result-outside"),
        ("HK * B - span", "HK - span", "result-outside"),
        ("frag.store ds, ds_s[at % 2][w];", "frag.store __to<DTYPE>(s), ds_s[at % 2][w];", "result-outside"),
    ),
    "attention_backward_sm90 in clusters": (
        ("trigger.cluster empty;", "trigger empty;", "race"),
        ("(together + CLUSTER) * ROWS * GROUPS, S", "(together + 1) * ROWS * GROUPS, S", "result-outside"),
        ("together * ROWS * GROUPS - ahead", "n * ROWS * GROUPS - ahead", ""),
        ("together = i / CLUSTER * CLUSTER;", "together = i;", ""),
        ("cdiv(S, 128 * CLUSTER) * 128 * CLUSTER", "cdiv(S, 128) * 128", "out-of-bounds"),
        ("key_tiles = cdiv(T, ROWS * GROUPS * CLUSTER) * CLUSTER", "key_tiles = cdiv(T, ROWS * GROUPS)", "entry-check-failed"),
    ),
    "attention_backward_sm90 in halves": (
        ("trigger weights_full;", "", "event-never-triggered"),
        ("wait weights_full;\n", "", "race"),
        ("    wait ds_full;\n", "", "race"),
        ("frag.store ds, ds_s;", "frag.store __to<DTYPE>(weights), ds_s;", "result-outside"),
        ("ds, q_s[stage].subspan(QUERY_TILE, DEPTH).at(0, 1)", "ds, q_s[stage].subspan(QUERY_TILE, DEPTH).at(0, 0)", "result-outside"),
        ("__to<DTYPE>(weights), dout_s[stage].subspan(QUERY_TILE, DEPTH).at(0, 0)", "__to<DTYPE>(s), dout_s[stage].subspan(QUERY_TILE, DEPTH).at(0, 0)", "result-outside"),
        ("wait dout_full[stage];\n    mma", "mma", "race"),
        ("if (at > 0) release<0, CLUSTER>(q_empty.at(at + STAGES - 1));", "if (at > 0) release<1, CLUSTER>(q_empty.at(at + STAGES - 1));", "race"),
        ("if (at > 0) release<0, CLUSTER>(q_empty.at(at + STAGES - 1));", "", "deadlock"),
        ("    release<0, CLUSTER>(q_empty[stage]);\n  }\n}\n", "    mma.wait<0>;\n  }\n}\n", "race"),
        ("leave_half(dv_sum, dv, b, h, n, 1);", "leave_half(dv_sum, dv, b, h, n, 0);", "race"),
        ("leave_half(dk_sum * scale, dk, b, h, n, 1);", "leave_half(dk_sum, dk, b, h, n, 1);", "result-outside"),
        ("frag.store weights * growth_of(s), weights_s;", "frag.store weights, weights_s;", "result-outside"),
        ("      wait rounded_empty;\n", "", "race"),
        ("mma.row.col dv_sum, rounded_s, dout_s", "mma.row.col dv_sum, __to<DTYPE>(weights), dout_s", "store-unread"),
        ("v_s[n % VALUE_STAGES], v_full.at(n));", "v_s[n % VALUE_STAGES], k_full.at(n));", "race"),
    ),
    "attention_backward_sm90": (
        ("frag.load o_s", "frag.load dout_s", "result-outside"),
        ("n * FEW + r < S", "n * FEW + r < 64", "result-outside"),
        ("wait full;\n  mma.row.row scores", "mma.row.row scores", "race"),
        ("wait empty;\n  if constexpr (CLUSTER > 1) {\n    tma.copy.async<full>.swiz<D % 64", "if constexpr (CLUSTER > 1) {\n    tma.copy.async<full>.swiz<D % 64", ""),
        ("wait v_full[w];", "", "race"),
        ("release<1, CLUSTER>(dout_empty[stage]);", "mma.wait<1>;", "deadlock"),
        ("release<0, CLUSTER>(q_empty[stage]);", "release<1, CLUSTER>(q_empty[stage]);", "race"),
        ("if (ahead < ROWS - 1)", "if (ahead < 0)", "result-outside"),
        ("+ ahead_of<RIGHT>(S, T, right) - (n", "- (n", "result-outside"),
        ("+ ahead ?", "+ ahead + 1 ?", "result-outside"),
        ("i = first + at % count", "i = at % count", "result-outside"),
        ("h * sharing + at / count", "h * sharing", "result-outside"),
        ("dp - frag.load delta_s[stage]", "dp - frag.load lse2_s[stage]", "result-outside"),
        ("dk_sum = dk_sum * scale;", "", "result-outside"),
        ("leave_head(dv_sum, v_s[w]", "leave_head(dk_sum, v_s[w]", "result-outside"),
        ("dv, b, h, n * CONSUMERS + w", "dv, b, h, n * CONSUMERS", "race"),
        ("wait dout_full[w];", "", "race"),
        ("release<0, CLUSTER>(v_empty.at(n));", "mma.wait<0>;", "deadlock"),
        ("from + KEY_TILE > seen", "from + KEY_TILE > T", "result-outside"),
        ("seen - from, 0", "seen - from + 1, 0", "result-outside"),
        ("(together + CLUSTER) * ROWS * CONSUMERS + ahead", "together * ROWS * CONSUMERS + ahead", "result-outside"),
        ("dp - row_delta", "dp - row_lse2", "result-outside"),
        ("s * c - row_lse2", "s * scale - row_lse2", "result-outside"),
        ("dq_sum = dq_sum * scale;", "", "result-outside"),
        ("h / sharing, skipped + n);\n          load<CLUSTER>(v", "h, skipped + n);\n          load<CLUSTER>(v", "result-outside"),
        ("dq, b, h, i * CONSUMERS + w", "dq, b, h, i * CONSUMERS", "race"),
    ),
}


# What the changed kernels of gradients run on.
BROKEN_GRADIENTS = {
    "attention_backward_sm90": (
        dict(B=1, S=130, T=140, H=2, HK=1, scale=0.088),
        dict(CAUSAL="true", D=64, KEY_TILE=64),
    ),
    "attention_backward_sm90 with options": (
        dict(B=1, S=130, T=340, H=2, HK=1, scale=0.3, left=40, right=10, soft_cap=1.5),
        dict(D=64, KEY_TILE=64, LEFT="true", RIGHT="true", SOFT_CAP="true"),
    ),
    "attention_backward_sm90 in clusters": (
        dict(B=1, S=300, T=340, H=2, HK=1, scale=0.088, left=140),
        dict(CAUSAL="true", LEFT="true", D=64, KEY_TILE=64, CLUSTER=2),
    ),
    "attention_backward_sm90 in halves": (
        dict(B=1, S=200, T=140, H=2, HK=1, scale=0.3, soft_cap=1.5),
        dict(CAUSAL="true", SOFT_CAP="true", D=64, KEY_TILE=64, HALVES="true", VALUE_STAGES=1, EARLY="true"),
    ),
    "attention_backward_sm90 in any order": (
        dict(B=2, S=130, T=340, H=2, HK=1, scale=0.088),
        dict(CAUSAL="true", D=64, DETERMINISTIC="false"),
    ),
}
