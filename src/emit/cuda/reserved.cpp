#include "emit/cuda/reserved.h"

#include <algorithm>
#include <array>
#include <span>

#include "emit/cuda/instruction.h"
#include "emit/cuda/names.h"

namespace kiln::emit {

namespace {

consteval std::size_t word_count(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, ' '));
}

// The words of a text, each with a blank behind it.
template <std::size_t N>
consteval std::array<std::string_view, N> words(std::string_view text) {
  std::array<std::string_view, N> out;
  for (std::string_view& word : out) {
    word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() + 1);
  }
  return out;
}

// C++20 [lex.key], with the alternative tokens.
constexpr std::string_view kKeywordsText =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast else "
    "enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename union unsigned using virtual void volatile wchar_t while xor xor_eq ";
constexpr auto kKeywords = words<word_count(kKeywordsText)>(kKeywordsText);
static_assert(std::ranges::is_sorted(kKeywords));

// What the emitted text means by a bare name; `stream` is a parameter of every launcher.
constexpr std::string_view kMeantText =
    "blockDim blockIdx dim3 fmod fmodf gridDim kiln main printf smem std stream threadIdx "
    "warpSize ";
constexpr auto kMeant = words<word_count(kMeantText)>(kMeantText);
static_assert(std::ranges::is_sorted(kMeant));

// Macros of the C and C++ libraries that CUDA's headers bring along or a program often includes,
// and those that compilers define beside their own. A type's letters behind one are cut off:
// M_PIf64.
constexpr std::string_view kMacrosText =
    "ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET "
    "ADJ_OFFSET_SINGLESHOT ADJ_OFFSET_SS_READ ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK "
    "ADJ_TIMECONST AIO_PRIO_DELTA_MAX BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX "
    "BIG_ENDIAN BOOL_MAX BOOL_WIDTH BUFSIZ BYTE_ORDER CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX "
    "CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOCK_BOOTTIME CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC "
    "CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_REALTIME "
    "CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE CLOCK_TAI CLOCK_THREAD_CPUTIME_ID "
    "COLL_WEIGHTS_MAX CU_UUID_HAS_BEEN_DEFINED DBL_DIG DBL_EPSILON DBL_MAX DBL_MIN "
    "DELAYTIMER_MAX EDOM EILSEQ EOF ERANGE EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_CLR "
    "FD_ISSET FD_SET FD_SETSIZE FD_ZERO FILENAME_MAX FLT_DIG FLT_EPSILON FLT_MAX FLT_MIN "
    "FLT_RADIX FOPEN_MAX FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_INT_DOWNWARD FP_INT_TONEAREST "
    "FP_INT_TONEARESTFROMZERO FP_INT_TOWARDZERO FP_INT_UPWARD FP_LLOGB0 FP_LLOGBNAN FP_NAN "
    "FP_NORMAL FP_SUBNORMAL FP_ZERO HOST_NAME_MAX HUGE_VAL HUGE_VALF HUGE_VALL HUGE_VAL_F32 "
    "HUGE_VAL_F32X HUGE_VAL_F64 HUGE_VAL_F64X INFINITY INT16_MAX INT16_MIN INT32_MAX INT32_MIN "
    "INT64_MAX INT64_MIN INT8_MAX INT8_MIN INT_MAX INT_MIN INT_WIDTH IOV_MAX LDBL_MAX LDBL_MIN "
    "LINE_MAX LITTLE_ENDIAN LLONG_MAX LLONG_MIN LLONG_WIDTH LOGIN_NAME_MAX LONG_BIT "
    "LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN LONG_WIDTH L_ctermid L_cuserid L_tmpnam "
    "MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MOD_CLKA "
    "MOD_CLKB MOD_ESTERROR MOD_FREQUENCY MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS "
    "MOD_TAI MOD_TIMECONST MQ_PRIO_MAX M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2 M_LOG10E "
    "M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 M_SQRT2 NAME_MAX NAN NFDBITS NGROUPS_MAX NL_ARGMAX "
    "NL_LANGMAX NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX NULL NZERO PATH_MAX PDP_ENDIAN PIPE_BUF "
    "PTHREAD_DESTRUCTOR_ITERATIONS PTHREAD_KEYS_MAX PTHREAD_STACK_MIN PTRDIFF_MAX PTRDIFF_MIN "
    "P_tmpdir RAND_MAX RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT RE_DUP_MAX RTSIG_MAX "
    "SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET "
    "SEM_VALUE_MAX SHRT_MAX SHRT_MIN SHRT_WIDTH SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM "
    "SIG_DFL SIG_ERR SIG_IGN SIZE_MAX SNAN SNANF SNANF32 SNANF32X SNANF64 SNANF64X SNANL "
    "SSIZE_MAX STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS STA_MODE STA_NANO "
    "STA_PLL STA_PPSERROR STA_PPSFREQ STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER "
    "STA_RONLY STA_UNSYNC TIMER_ABSTIME TIME_UTC TMP_MAX TTY_NAME_MAX UCHAR_MAX UCHAR_WIDTH "
    "UINT16_MAX UINT32_MAX UINT64_MAX UINT8_MAX UINT_MAX UINT_WIDTH ULLONG_MAX ULLONG_WIDTH "
    "ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH USHRT_MAX USHRT_WIDTH WCONTINUED WEXITED WEXITSTATUS "
    "WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WORD_BIT WSTOPPED WSTOPSIG "
    "WTERMSIG WUNTRACED XATTR_LIST_MAX XATTR_NAME_MAX XATTR_SIZE_MAX alloca assert "
    "assert_perror be16toh be32toh be64toh errno fpclassify htobe16 htobe32 htobe64 htole16 "
    "htole32 htole64 i386 isalnum_l isalpha_l isascii isascii_l isblank_l iscntrl_l isdigit_l "
    "isfinite isgraph_l isgreater isgreaterequal isless islessequal islessgreater islower_l "
    "isnormal isprint_l ispunct_l isspace_l issubnormal isunordered isupper_l isxdigit_l "
    "le16toh le32toh le64toh linux math_errhandling offsetof setjmp sigsetjmp stderr stdin "
    "stdout strdupa strndupa toascii toascii_l unix va_arg va_copy va_end va_start ";
constexpr auto kMacros = words<word_count(kMacrosText)>(kMacrosText);
static_assert(std::ranges::is_sorted(kMacros));

// What those headers declare at global scope: functions, types, enumerators. A kernel has C linkage
// and cannot share a name with them; inside a kernel they may be hidden. The forms for other types
// (sinf, strtol_l, fgetc_unlocked) are cut to the first.
constexpr std::string_view kGlobalsText =
    "CUevent_st CUuuid FILE MAJOR_VERSION MINOR_VERSION PATCH_LEVEL a64l abort abs acos acosh "
    "aligned_alloc arc4random arc4random_buf arc4random_uniform asctime asin asinh asprintf "
    "atan atan2 atanh atexit atof atoi atol bcmp bcopy blkcnt64_t blkcnt_t blksize_t bsearch "
    "bzero caddr_t calloc canonicalize canonicalize_file_name cbrt ceil clearenv clearerr clock "
    "clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime "
    "clock_t clockid_t comparison_fn_t cookie_close_function_t cookie_io_functions_t "
    "cookie_read_function_t cookie_seek_function_t cookie_write_function_t copysign cos cosh "
    "cospi ctermid ctime cuserid cyl_bessel_i0 cyl_bessel_i1 daddl daddr_t daylight ddivl dev_t "
    "dfmal difftime div div_t dmull double_t dprintf drand48 drem dsqrtl dsubl dysize ecvt "
    "erand48 erf erfc erfcinv erfcx erfinv exit exp exp10 exp2 explicit_bzero expm1 fabs fadd "
    "fclose fcloseall fcvt fd_mask fd_set fdim fdiv fdivide fdopen feof ferror fflush ffma ffs "
    "fgetc fgetpos fgets fileno finite float_t flockfile floor fma fmax fmaximum fmaximum_mag "
    "fmaximum_mag_num fmaximum_num fmaxmag fmemopen fmin fminimum fminimum_mag fminimum_mag_num "
    "fminimum_num fminmag fmodf32 fmodf32x fmodf64 fmodf64x fmodl fmul fopen fopencookie "
    "fpos64_t fpos_t fprintf fputc fputs fread free freopen frexp fromfp fromfpx fsblkcnt64_t "
    "fsblkcnt_t fscanf fseek fseeko fsetpos fsfilcnt64_t fsfilcnt_t fsid_t fsqrt fsub ftell "
    "ftello ftrylockfile funlockfile fwrite gamma gcvt getc getchar getdate getdate_err "
    "getdelim getenv getline getloadavg getpayload getpt getsubopt getw gid_t gmtime grantpt "
    "hypot id_t ilogb index initstate ino64_t ino_t int16_t int32_t int64_t int8_t isalnum "
    "isalpha isblank iscntrl isctype isdigit isgraph isinf islower isnan isprint ispunct "
    "isspace isupper isxdigit j0 j1 jn jrand48 key_t l64a labs lcong48 ldexp ldiv ldiv_t lgamma "
    "libraryPropertyType llabs lldiv lldiv_t llmax llmin llogb llrint llround locale_t "
    "localtime loff_t log log10 log1p log2 logb lrand48 lrint lround malloc max max_align_t "
    "mblen mbstowcs mbtowc memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memset "
    "min mkdtemp mkostemp mkostemps mkstemp mkstemps mktemp mktime mode_t modf mrand48 nan "
    "nanosleep nearbyint nextafter nextdown nexttoward nextup nlink_t norm norm3d norm4d "
    "normcdf normcdfinv nrand48 nullptr_t obstack_printf obstack_vprintf off64_t off_t on_exit "
    "open_memstream pclose perror pid_t popen posix_memalign posix_openpt pow pselect "
    "pthread_attr_t pthread_barrier_t pthread_barrierattr_t pthread_cond_t pthread_condattr_t "
    "pthread_key_t pthread_mutex_t pthread_mutexattr_t pthread_once_t pthread_rwlock_t "
    "pthread_rwlockattr_t pthread_spinlock_t pthread_t ptrdiff_t ptsname putc putchar putenv "
    "puts putw qecvt qfcvt qgcvt qsort quad_t quick_exit rand random rcbrt realloc reallocarray "
    "realpath register_t remainder remove remquo rename renameat renameat2 rewind rhypot rindex "
    "rint rnorm rnorm3d rnorm4d round roundeven rpmatch rsqrt scalb scalbln scalbn scanf "
    "secure_getenv seed48 select setbuf setbuffer setenv setlinebuf setpayload setpayloadsig "
    "setstate setvbuf sigabbrev_np sigdescr_np signbit signgam significand sigset_t sin sincos "
    "sincospi sinh sinpi size_t snprintf sprintf sqrt srand srand48 srandom sscanf ssize_t "
    "stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror "
    "strerrordesc_np strerrorname_np strfromd strfromf strfromf32 strfromf32x strfromf64x "
    "strfroml strfry strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen "
    "strptime strsep strsignal strspn strtod strtof strtof32 strtof32x strtof64x strtok strtol "
    "strtold strtoq strtoul strtouq struct_FILE strverscmp strxfrm suseconds_t system tan tanh "
    "tempnam tgamma time time_t timegm timelocal timer_create timer_delete timer_getoverrun "
    "timer_gettime timer_settime timer_t timespec_get timespec_getres timezone tmpfile tmpnam "
    "tolower totalorder totalordermag toupper trunc types tzname tzset u_char u_int u_int16_t "
    "u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short ufromfp ufromfpx uid_t uint ullmax "
    "ullmin ulong umax umin ungetc unlockpt unsetenv useconds_t ushort va_list valloc vasprintf "
    "vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcstombs wctomb y0 y1 "
    "yn ";
constexpr auto kGlobals = words<word_count(kGlobalsText)>(kGlobalsText);
static_assert(std::ranges::is_sorted(kGlobals));

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::binary_search(names, name);
}

// `name` without the letters of a type or of a variant behind it, one after the other.
bool contains_stem(std::span<const std::string_view> names, std::string_view name) {
  if (contains(names, name)) return true;
  constexpr std::string_view kEndings[] = {"f32x", "f64x", "f32", "f64", "f",
                                           "l",    "_r",   "_l",  "64",  "_unlocked"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending) &&
           contains_stem(names, name.substr(0, name.size() - ending.size()));
  });
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

// cudaSuccess, CUDA_R_32F, CUstream: the names of the runtime and of the driver.
bool is_of_cuda(std::string_view name) {
  if (name.starts_with("CUDA")) return true;
  return name.starts_with("cuda") && name.size() > 4 && (is_capital(name[4]) || name[4] == '_');
}

// float4, ushort2, double4_16a.
bool is_vector_type(std::string_view name) {
  for (const std::string_view ending : {"_16a", "_32a"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  if (name.empty() || name.back() < '1' || name.back() > '4') return false;
  name.remove_suffix(1);
  constexpr std::string_view kElements[] = {"char", "double",   "float",     "int",
                                            "long", "longlong", "short",     "uchar",
                                            "uint", "ulong",    "ulonglong", "ushort"};
  return contains(kElements, name);
}

// f32addf64, f64xsqrtf64x: glibc's functions that round once, to a narrower type.
bool is_narrowing(std::string_view name) {
  if (!name.starts_with("f32") && !name.starts_with("f64")) return false;
  name.remove_prefix(3);
  if (name.starts_with("x")) name.remove_prefix(1);
  constexpr std::string_view kFunctions[] = {"add", "div", "fma", "mul", "sqrt", "sub"};
  return std::ranges::any_of(kFunctions, [&](std::string_view function) {
    return name.starts_with(function) && name.size() > function.size() + 2 &&
           name[function.size()] == 'f' && is_digit(name[function.size() + 1]);
  });
}

// Without the number of steps at the end: mma_m64n64k16_f32_f16 of mma_m64n64k16_f32_f16_x4.
std::string_view without_steps(std::string_view name) {
  const std::size_t mark = name.rfind("_x");
  if (mark == std::string_view::npos) return name;
  const std::string_view steps = name.substr(mark + 2);
  return !steps.empty() && std::ranges::all_of(steps, is_digit) ? name.substr(0, mark) : name;
}

// mma_m16n8k16_f32_f16, ldmatrix_x4: functions that stand in front of the kernels.
bool is_wrapper(std::string_view name) {
  const auto is_mma = [&, alone = without_steps(name)](const target::Mma& mma) {
    if (!mma.reads_shared) return wrapper_name(mma) == name;
    return wrapper_name(StepsOf{.mma = mma}) == alone ||
           wrapper_name(StepsOf{.mma = mma, .a_registers = true}) == alone;
  };
  if (name.starts_with("mma_") && std::ranges::any_of(target::all_mmas(), is_mma)) return true;
  return std::ranges::any_of(target::all_copies(), [&](const target::Copy& copy) {
    return copy.matrices > 0 && copy.name.size() == name.size() && wrapper_name(copy) == name;
  });
}

}  // namespace

bool is_reserved(std::string_view name) {
  return contains(kKeywords, name) || contains(kMeant, name) || contains_stem(kMacros, name) ||
         is_of_cuda(name) || is_wrapper(name);
}

bool is_global(std::string_view name) {
  return contains_stem(kGlobals, name) || is_vector_type(name) || is_narrowing(name) ||
         (name.size() > 2 && name.starts_with("CU") && (is_capital(name[2]) || name[2] == '_')) ||
         (name.starts_with("CU") && name.ends_with("_st")) || name == "CUuuid";
}

}  // namespace kiln::emit
