"""What the kernels of attention are run with: (kernel, shape, defines, options), and what is done wrong in them."""

import itertools

SCORES = "s[b,h,i,j] = sum[d](q[b,i,h,d] * k[b,j,h / (H / HK),d]); "
OF_SCORES = (
    "l[b,h,i] = sum[j](p[b,h,i,j]); o[b,i,h,d] = sum[j](p[b,h,i,j] * v[b,j,h / (H / HK),d]) / l[b,h,i]; "
    "lse[b,h,i] = top[b,h,i] * scale + log(l[b,h,i])"
)
ATTENTION = f"{SCORES}top[b,h,i] = max[j](s[b,h,i,j]); p[b,h,i,j] = exp((s[b,h,i,j] - top[b,h,i]) * scale); {OF_SCORES}"
SEEN = "j <= i + T - S"
CAUSAL_ATTENTION = (
    f"{SCORES}top[b,h,i] = max[j]({SEEN} ? s[b,h,i,j] : -inf); "
    f"p[b,h,i,j] = {SEEN} ? exp((s[b,h,i,j] - top[b,h,i]) * scale) : 0; {OF_SCORES}"
)
# Heads of 64, 128 and 256; room for the queries of two items or of one, and for results.
ATTENTIONS = (
    dict(),
    dict(TOGETHER=2, FEW=2),
    dict(D=64, CONSUMERS=3),
    dict(D=64, DTYPE="f16", STAGES=3, TILE=192),
    dict(TILE=176, AHEAD=1, APART="false"),
    dict(D=256, TILE=80, AHEAD=1, APART="false", LATE="true", TURNS="false"),
)
# One tile of keys, as many as tiles, and more; items that some blocks have one more of; queries that see nothing.
ATTENTION_SHAPES = (
    dict(B=1, S=64, T=64, H=1, HK=1),
    dict(B=2, S=340, T=420, H=4, HK=2),
    dict(B=1, S=500, T=500, H=3, HK=1),
    dict(B=1, S=130, T=700, H=2, HK=2),
    dict(B=1, S=1, T=300, H=5, HK=5),
    dict(B=1, S=333, T=170, H=2, HK=1),
)


def forward_cases():
    for defines, causal, shape in itertools.product(ATTENTIONS, (False, True), ATTENTION_SHAPES):
        formula = CAUSAL_ATTENTION if causal else ATTENTION
        # A query without keys has a result that the formula has not.
        options = () if causal and shape["S"] > shape["T"] else ("--expect", formula)
        more = dict(BLOCKS=3, CAUSAL=str(causal).lower())
        yield "attention_sm90", shape | dict(scale=0.088), defines | more, options


def gradients(causal):
    """What the kernel of attention's gradients computes of an o and an lse that need not be those of q, k and v."""
    weight = "exp(s[b,h,i,j] * scale - lse[b,h,i])"
    of_head = "h * HK >= g * H && h * HK < g * H + H ?"
    return (
        f"{SCORES}p[b,h,i,j] = {f'{SEEN} ? {weight} : 0' if causal else weight}; "
        "dp[b,h,i,j] = sum[d](dout[b,i,h,d] * v[b,j,h / (H / HK),d]); delta[b,h,i] = sum[d](o[b,i,h,d] * dout[b,i,h,d]); "
        "ds[b,h,i,j] = p[b,h,i,j] * (dp[b,h,i,j] - delta[b,h,i]); "
        "dq[b,i,h,d] = scale * sum[j](ds[b,h,i,j] * k[b,j,h / (H / HK),d]); "
        f"dk[b,j,g,d] = scale * sum[h,i]({of_head} ds[b,h,i,j] * q[b,i,h,d] : 0); "
        f"dv[b,j,g,d] = sum[h,i]({of_head} p[b,h,i,j] * dout[b,i,h,d] : 0)"
    )


GRADIENTS = (
    dict(),
    dict(DTYPE="f16", QUERY_TILE=32, KEY_TILE=64, STAGES=3),
    dict(D=64, QUERY_TILE=96),
    dict(D=256, HALVES="true", KEY_TILE=48),
)
# Tiles that are full, and that are not; heads that share; queries that see nothing; one query.
GRADIENT_SHAPES = (
    dict(B=1, S=128, T=128, H=1, HK=1),
    dict(B=2, S=70, T=140, H=2, HK=1),
    dict(B=1, S=150, T=70, H=3, HK=1),
    dict(B=1, S=1, T=200, H=2, HK=2),
)


def backward_cases():
    for defines, causal, shape in itertools.product(GRADIENTS, (False, True), GRADIENT_SHAPES):
        more = dict(CAUSAL=str(causal).lower())
        yield "attention_backward_sm90", shape | dict(scale=0.088), defines | more, ("--expect", gradients(causal))


# What is changed, and what is reported of it; "" where only the comparison of numbers finds it.
MISTAKES = {
    "attention_sm90": (
        ("wait full;\n  mma.row.row scores", "mma.row.row scores", "race"),
        ("wait full;\n  mma.row.col sum", "mma.row.col sum", "race"),
        ("wait empty;\n  tma.copy", "tma.copy", "phase-overrun"),
        ("if constexpr (TURNS) trigger others;\n", "", "deadlock"),
        ("wait q_full[(round + 1) % AHEAD][w];\n", "", "race"),
        ("trigger q_empty[round % AHEAD][w];", "", "deadlock"),
        ("release<0>(v_empty);", "mma.wait<0>;", "deadlock"),
        ("release<1>(k_empty", "release<2>(k_empty", "race"),
        ("if constexpr (!LATE) acc = acc * alpha;", "", "result-outside"),
        ("acc = frag.fill.f32 [ROWS, D] 0.0f;\n              weights", "weights", "result-outside"),
        ("m_before = m;", "m_before = alpha;", "result-outside"),
        ("l_before = l;", "l_before = m;", "result-outside"),
        ("i = queries_of<CAUSAL, MANY, TOGETHER>(item, H * B, tiles);\n            following", "i = 0;\n            following", "race"),
        ("seen + w * ROWS - (count - 2 - n)", "seen + 1 + w * ROWS - (count - 2 - n)", "result-outside"),
        ("TILE) - 1)) : 0;", "TILE) - 2)) : 0;", "result-outside"),
        ("T - S + 1 : T;\n              mask", "T - S : T;\n              mask", "result-outside"),
        ("l *= alpha;", "", "result-outside"),
        ("number - 1 - inside / 2", "number - inside / 2", "out-of-bounds"),
    ),
    "attention_backward_sm90": (
        ("frag.load o_s", "frag.load dout_s", "result-outside"),
        ("n * FEW + r < S", "n * FEW + r < 64", "result-outside"),
        ("wait full;\n  mma.row.row scores", "mma.row.row scores", "race"),
        ("wait empty;\n  tma.copy.async<full>.swiz<128> x.subspan(1, R, 1, D).at(b, n, h, 0).sqz() => tile;\n  tma", "tma", ""),
        ("wait v_full[w];", "", "race"),
        ("release<1>(dout_empty[stage]);", "mma.wait<1>;", "deadlock"),
        ("release<0>(q_empty[stage]);", "release<1>(q_empty[stage]);", "race"),
        ("if (ahead < ROWS - 1)", "if (ahead < 0)", "result-outside"),
        ("+ T - S - (n", "- (n", "result-outside"),
        ("+ ahead ?", "+ ahead + 1 ?", "result-outside"),
        ("i = first + at % count", "i = at % count", "result-outside"),
        ("h * sharing + at / count", "h * sharing", "result-outside"),
        ("dp - frag.load delta_s[stage]", "dp - frag.load lse2_s[stage]", "result-outside"),
        ("dk_sum = dk_sum * scale;", "", "result-outside"),
        ("leave_head(dv_sum, v_s[w]", "leave_head(dk_sum, v_s[w]", "result-outside"),
        ("dv, b, h, n * GROUPS + w", "dv, b, h, n * GROUPS", "race"),
        ("wait dout_full[w];", "", "race"),
        ("release<0>(v_empty[stage]);", "mma.wait<0>;", "deadlock"),
        ("(n + 1) * KEY_TILE > seen", "(n + 1) * KEY_TILE > T", "result-outside"),
        ("seen - n * KEY_TILE, T", "seen - n * KEY_TILE + 1, T", "result-outside"),
        ("(i + 1) * ROWS * CONSUMERS + T - S", "i * ROWS * CONSUMERS + T - S", "result-outside"),
        ("dp - row_delta", "dp - row_lse2", "result-outside"),
        ("s * c - row_lse2", "s * scale - row_lse2", "result-outside"),
        ("dq_sum = dq_sum * scale;", "", "result-outside"),
        ("h / sharing, n);\n          load(v", "h, n);\n          load(v", "result-outside"),
        ("dq, b, h, i * CONSUMERS + w", "dq, b, h, i * CONSUMERS", "race"),
    ),
}
