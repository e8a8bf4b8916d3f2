//! Reserved words: of the generated languages, of their headers, and of ppt itself.

use crate::language::Language;

/// Words of later versions of the frame language. They are reserved only as declared names.
pub(crate) const RESERVED_FOR_LATER: [&str; 14] = [
    "in",
    "out",
    "point",
    "edge",
    "chain",
    "step",
    "key",
    "span",
    "histogram",
    "counter",
    "say",
    "blob",
    "group",
    "hwcounter",
];

/// C11 and C23, with the words that gcc and clang add outside `-std=c11`.
const C: &str = " alignas alignof asm auto bool break case char const constexpr continue default do \
    double else enum extern false float for goto if inline int long nullptr register restrict \
    return short signed sizeof static static_assert struct switch thread_local true typedef typeof \
    typeof_unqual union unsigned void volatile while ";

/// C++17 and C++20, the alternative tokens included.
const CPP: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char \
    char8_t char16_t char32_t class co_await co_return co_yield compl concept const consteval \
    constexpr constinit const_cast continue decltype default delete do double dynamic_cast else \
    enum explicit export extern false float for friend goto if inline int long mutable namespace \
    new noexcept not not_eq nullptr operator or or_eq private protected public register \
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct \
    switch template this thread_local throw true try typedef typeid typename union unsigned using \
    virtual void volatile wchar_t while xor xor_eq ";

/// Rust up to the 2024 edition, reserved words included.
const RUST: &str = " Self abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self static struct super trait true try type typeof unsafe unsized use virtual \
    where while yield ";

/// Java 17, including its literal words.
const JAVA: &str = " abstract assert boolean break byte case catch char class const continue default \
    do double else enum extends false final finally float for goto if implements import instanceof \
    int interface long native new null package private protected public return short static \
    strictfp super switch synchronized this throw throws transient true try void volatile while ";

/// Macros of compilers and of headers that a C or C++ program is likely to include: the
/// preprocessor replaces such a name. Includes C types that headers may define as macros.
const MACROS: &str = " linux unix i386 errno stdin stdout stderr EOF NULL BUFSIZ FILENAME_MAX \
    FOPEN_MAX L_tmpnam TMP_MAX SEEK_SET SEEK_CUR SEEK_END EXIT_SUCCESS EXIT_FAILURE RAND_MAX \
    MB_CUR_MAX CHAR_BIT CHAR_MIN CHAR_MAX SCHAR_MIN SCHAR_MAX UCHAR_MAX SHRT_MIN SHRT_MAX USHRT_MAX \
    INT_MIN INT_MAX UINT_MAX LONG_MIN LONG_MAX ULONG_MAX LLONG_MIN LLONG_MAX ULLONG_MAX SIZE_MAX \
    SSIZE_MAX PATH_MAX NAME_MAX PIPE_BUF INT8_MIN INT8_MAX UINT8_MAX INT16_MIN INT16_MAX UINT16_MAX \
    INT32_MIN INT32_MAX UINT32_MAX INT64_MIN INT64_MAX UINT64_MAX INFINITY NAN HUGE_VAL M_PI M_E \
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t \
    assert offsetof setjmp va_start va_arg va_end va_copy complex imaginary noreturn \
    sa_handler sa_sigaction st_atime st_mtime st_ctime s_addr s6_addr h_addr \
    si_pid si_uid si_status si_value si_addr si_fd \
    SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGKILL SIGPIPE SIGPROF \
    SIGQUIT SIGSEGV SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 \
    SIG_DFL SIG_ERR SIG_IGN EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN \
    EWOULDBLOCK ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE \
    ENOTTY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOSYS ENOTEMPTY \
    ELOOP ENOTCONN ECONNRESET ECONNREFUSED ECONNABORTED ETIMEDOUT EHOSTUNREACH ENETUNREACH \
    EADDRINUSE EINPROGRESS EALREADY ENOTSUP EOPNOTSUPP ECANCELED EOVERFLOW EPROTO EMSGSIZE \
    CLOCK_REALTIME CLOCK_MONOTONIC CLOCK_BOOTTIME ";

/// The `languages` in which `name` is a keyword, as text; empty if there are none.
pub(crate) fn keyword_in(name: &str, languages: &[Language]) -> String {
    let is_made = |made: fn(Language) -> bool| languages.iter().any(|&language| made(language));
    let found: Vec<&str> = [
        ("C", C, is_made(Language::is_made_of_c)),
        ("C++", CPP, languages.contains(&Language::Cpp)),
        ("Rust", RUST, languages.contains(&Language::Rust)),
        ("Java", JAVA, languages.contains(&Language::Java)),
    ]
    .iter()
    .filter(|(_, words, is_made)| *is_made && contains(words, name))
    .map(|(language, ..)| *language)
    .collect();
    match found.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Whether `name` is a keyword of Java.
pub(crate) fn is_keyword_of_java(name: &str) -> bool {
    contains(JAVA, name)
}

/// Whether `name` is a macro of a compiler or of a common header.
pub(crate) fn is_macro(name: &str) -> bool {
    contains(MACROS, name)
}

fn contains(words: &str, name: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_what() {
        let keyword = |name| keyword_in(name, Language::ALL);
        assert_eq!(keyword("for"), "C, C++, Rust and Java");
        assert_eq!(keyword("match"), "Rust");
        assert_eq!(keyword("xor"), "C++");
        assert_eq!(keyword("import"), "Java");
        assert_eq!(keyword("restrict"), "C");
        assert_eq!(keyword("kind"), "");
        assert_eq!(keyword_in("class", &[Language::C, Language::Rust]), "");
        assert_eq!(keyword_in("for", &[Language::Python]), "C");
        assert!(is_macro("errno") && is_macro("EOF") && !is_macro("TIMEOUT"));
    }
}
