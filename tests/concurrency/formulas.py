"""What the examples with register tiles mean, as formulas, and the shapes at which their mutants run.

A mutant that computes something else is compared with its own reference, which computes the same; only a
formula, which knows nothing of the program, tells. Shapes are small, with more than one tile in each dimension
where that is possible, and with a rest. (The adversarial values of three columns are so large that
their exponentials overflow.)
"""

_GATES = "tests/concurrency/gates.npy"
_SOFTMAX = "y[m,n] = exp(x[m,n] - max[j](x[m,j])) / sum[j](exp(x[m,j] - max[i](x[m,i])))"
_CENTRED = "c[m,n] = x[m,n] - sum[j](x[m,j]) / 96"
_LAYER = "y[m,n] = c[m,n] * rsqrt(sum[j](c[m,j] * c[m,j]) / 96 + epsilon) * gain[n] + bias[n]"
_ADDED = "sum[m,n] = x[m,n] + residual[m,n]; t[m,n] = x[m,n] + residual[m,n]"
_RMS = "y[m,n] = t[m,n] * rsqrt(sum[j](t[m,j] * t[m,j]) / 96 + epsilon) * gain[n]"
_LOSS = "top[m] = max[n](x[m,n]); loss[m,o] = top[m] + log(sum[n](exp(x[m,n] - top[m]))) - x[m,label[m,0]]"
_SCORES = "s[h,m,n] = q[h,m,d] * k[h,n,d]"
_WEIGHTS = "p[h,m,n] = exp2((s[h,m,n] - max[j](s[h,m,j])) * c)"
_SEEN = "p[h,m,n] = n <= m ? exp2((s[h,m,n] - max[j](j <= m ? s[h,m,j] : -inf)) * c) : 0"
_VALUES = "o[h,m,d] = sum[n](p[h,m,n] * v[h,n,d]) / sum[n](p[h,m,n])"
_GATED = "g[m,n] = x[m,k] * w[n,k]; u[m,n] = x[m,k] * v[n,k]; y[m,n] = g[m,n] / (1 + exp(-g[m,n])) * u[m,n]"
_STEP = "-2 * 13.287712379549449 / 128"
_TURNED = (
    f"y[s,h,d] = d < 64 ? x[s,h,d] * cos(s * exp2(d * {_STEP})) - x[s,h,d + 64] * sin(s * exp2(d * {_STEP}))"
    f" : x[s,h,d] * cos(s * exp2((d - 64) * {_STEP})) + x[s,h,d - 64] * sin(s * exp2((d - 64) * {_STEP}))"
)
_NIBBLE = "((w[n,k / 128 * 16 + k % 32 / 2] >> ((((k % 128) >> 5) << 2) + ((k % 2) << 4))) & 15) - 8"
_FADED = (
    "a[h,t] = sum[i](i <= t ? -log2(1 + exp(-gate[h,i])) : 0) + 0 * gate[h,t]; s[h,t,j] = q[h,t,e] * k[h,j,e]; "
    "o[h,t,d] = sum[j](j <= t ? s[h,t,j] * exp2(a[h,t] - a[h,j]) * v[h,j,d] : 0)"
)
_RANK = "r[m,n] = sum[j](x[m,j] > x[m,n] ? 1 : x[m,j] == x[m,n] && j < n ? 1 : 0)"
_LARGEST = "value[m,k] = sum[n](r[m,n] == k ? x[m,n] : 0); place[m,k] = sum[n](r[m,n] == k ? n : 0)"
_CONVOLVED = (
    "y[n,h,w,k] = sum[t,c](h + (t - t % 3) / 3 >= 1 && h + (t - t % 3) / 3 <= 3 && w + t % 3 >= 1 && w + t % 3 <= 70"
    " ? x[n,h + t / 3 - 1,w + t % 3 - 1,c] * filter[t,k,c] : 0)"
)

# By example: (shape, formulas, other options) of each run.
_RUNS = {
    "softmax": [("M=10", (_SOFTMAX,), "-D N=96"), ("M=3", (_SOFTMAX,), "-D N=3 --fill adversarial")],
    "layer_norm": [("M=5,epsilon=0.5", (_CENTRED, _LAYER), "-D N=96")],
    "softmax_persistent": [
        ("M=7", (_SOFTMAX,), "-D N=96 -D BLOCKS=2"),
        ("M=3", (_SOFTMAX,), "-D N=3 -D BLOCKS=2 --fill adversarial"),
    ],
    "layer_norm_long": [("M=7,epsilon=0.5", (_CENTRED, _LAYER), "-D N=96 -D BLOCKS=2 -D THREADS=64")],
    "layer_norm_persistent": [("M=7,epsilon=0.5", (_CENTRED, _LAYER), "-D N=96 -D BLOCKS=2")],
    "rms_norm": [("M=5,epsilon=0.5", (_ADDED, _RMS), "-D N=96")],
    "cross_entropy": [
        ("M=6,N=1100", (_LOSS,), ""),
        ("M=3,N=3", (_LOSS,), "--fill adversarial"),
        ("M=1,N=1", (_LOSS,), "--fill adversarial --seed 9"),  # -106.5
    ],
    "rope": [("S=37,H=3", (_TURNED,), "")],
    "attention": [
        (shape, (_SCORES, _WEIGHTS, _VALUES), "")
        for shape in ("H=2,S=70,T=140,c=0.1275", "H=1,S=9,T=9,c=0.01", "H=1,S=70,T=2,c=40", "H=1,S=9,T=64,c=40")
    ],
    "attention_causal": [
        (shape, (_SCORES, _SEEN, _VALUES), "") for shape in ("H=2,S=140,c=0.1275", "H=8,S=2,c=40", "H=1,S=64,c=40")
    ],
    "attention_natural": [
        (shape, (_SCORES, _WEIGHTS, _VALUES), "")
        for shape in ("H=2,S=200,T=170,c=0.1275", "H=1,S=9,T=9,c=0.01", "H=1,S=70,T=2,c=40", "H=1,S=9,T=80,c=40")
    ]
    + [("H=1,S=200,T=200,c=0.1275", (_SCORES, _SEEN, _VALUES), "-D CAUSAL=true")],
    "attention_pipelined": [
        (shape, (_SCORES, _WEIGHTS, _VALUES), "")
        for shape in ("H=2,S=140,T=420,c=0.1275", "H=1,S=9,T=9,c=0.01", "H=1,S=70,T=2,c=40", "H=1,S=9,T=256,c=40")
    ]
    + [("H=1,S=9,T=130,c=0.000001", (_SCORES, _WEIGHTS, _VALUES), "--fill ones")],
    "swiglu": [("M=70,N=140,K=136", (_GATED,), "")],
    "swiglu_pipelined": [("M=140,N=136,K=72", (_GATED,), "-D BLOCKS=2")],
    "w8a16": [("M=40,N=70,K=144", ("y[n,m] = sum[k](x[m,k] * w[n,k]) * scale[n,0]",), "")],
    "w4a16": [
        ("M=20,N=70,K=1408,W=176,G=11", (f"y[n,m] = sum[k](x[m,k] * ({_NIBBLE}) * scale[n,k / 128])",), options)
        for options in ("", "--fill integers")
    ],
    "w8a8": [("M=70,N=72,K=144", ("y[m,n] = sum[k](x[m,k] * w[n,k]) * row_scale[m,0] * column_scale[0,n]",), "")],
    # Of normal gates nothing is left after a chunk; those of the file keep a third.
    "linear_attention": [("H=2,T=150", (_FADED,), options) for options in ("", f"--in gate={_GATES}")],
    "convolution": [("B=2,H=3,W=70,C=72,K=72", (_CONVOLVED,), "--fill integers")],
    "cumulative_sum": [("M=6,N=1100", ("y[m,n] = sum[j](j <= n ? x[m,j] : 0)",), "")],
    "top_k": [("M=5,N=9,K=9", (_RANK, _LARGEST), "")],
}


def runs_of(name):
    """The arguments of each run of the example, () when it has no formula."""
    return tuple(
        ("--shape", shape, "--expect", "; ".join(formulas), *options.split())
        for shape, formulas, options in _RUNS.get(name, ())
    )
