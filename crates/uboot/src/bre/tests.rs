use super::*;

/// What the GNU C library's regcomp and regexec (2.41) say: which names are found, or that the
/// pattern is refused.
#[track_caller]
fn check(pattern: &str, found: &[&str], others: &[&str]) {
    let regex =
        Regex::parse(pattern.as_bytes()).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    for name in found {
        assert!(regex.is_in(name.as_bytes()), "{pattern} is not found in {name:?}");
    }
    for name in others {
        assert!(!regex.is_in(name.as_bytes()), "{pattern} is found in {name:?}");
    }
}

#[track_caller]
fn refuses(pattern: &str, problem: Problem) {
    assert_eq!(Regex::parse(pattern.as_bytes()).err(), Some(problem), "{pattern}");
}

#[test]
fn patterns_are_searched_for_anywhere() {
    check("put", &["put", "fputs"], &["", "get"]);
    check("^put", &["puts"], &["fputs"]);
    check("puts$", &["fputs"], &["puts_"]);
    check("^puts$", &["puts"], &["fputs", "puts_"]);
    check("a.c", &["abc", "xa_cx"], &["ac"]);
    check("", &["", "x"], &[]);
}

#[test]
fn signs_without_a_backslash_are_literal() {
    check("a+", &["a+"], &["aa"]);
    check("a?|(b){2}", &["a?|(b){2}"], &["a", "bb"]);
    check("a^b$c", &["a^b$c"], &["abc"]);
    check(r"\(^a\)", &["ab"], &["ba"]);
    check(r"x\(a$\)", &["xa"], &["xab"]);
    check("^*a", &["*a"], &["a"]);
    check(r"\(*a\)", &["*a"], &["a"]);
    check(r"\+a", &["+a"], &["a"]);
}

#[test]
fn repetition_is_by_star_interval_and_the_extensions() {
    check("^ab*c", &["ac", "abbbc"], &["adc"]);
    check(r"^ab\+c", &["abc", "abbc"], &["ac"]);
    check(r"^ab\?c", &["ac", "abc"], &["abbc"]);
    check(r"^ab\{2\}c", &["abbc"], &["abc", "abbbc"]);
    check(r"^ab\{2,\}c", &["abbc", "abbbbc"], &["abc"]);
    check(r"^ab\{,2\}c", &["ac", "abbc"], &["abbbc"]);
    check(r"^ab\{1,2\}c", &["abc", "abbc"], &["ac", "abbbc"]);
    check(r"^ab\{0\}c", &["ac"], &["abc"]);
    check(r"^\(ab\)*$", &["", "abab"], &["aba"]);
    check(r"^\(a*\)*b", &["b", "aaab"], &["ac"]);
}

#[test]
fn alternatives_and_groups() {
    check(r"^\(puts\|putc\|printf\)$", &["puts", "putc", "printf"], &["put", "xputs"]);
    check(r"a\|b", &["a", "b"], &["c"]);
    check(r"^\(\)a", &["a"], &["b"]);
    check(r"x\|", &["", "y"], &[]);
    check(r"^a\|^b", &["ax", "bx"], &["xa"]);
}

#[test]
fn brackets_hold_ranges_and_classes() {
    check("^[a-c_]*$", &["abc_", ""], &["abd"]);
    check("^[^a-c]$", &["d"], &["a"]);
    check("^[]a]$", &["]", "a"], &["b"]);
    check("^[^]a]$", &["b"], &["]"]);
    check("^[a-]$", &["-", "a"], &["b"]);
    check("^[-a]$", &["-", "a"], &["b"]);
    check(r"^[\.]$", &["\\", "."], &["a"]);
    check("^[[:alpha:]_][[:alnum:]_]*$", &["do_version2"], &["2do"]);
    check("^[[.a.]-c[=x=]]$", &["b", "x"], &["d"]);
    check("a[*.]", &["a*", "a."], &["ab"]);
}

#[test]
fn back_references_repeat_what_a_group_matched() {
    check(r"^\(.\)\1$", &["aa"], &["ab"]);
    check(r"\(ab*\)_\1", &["abb_abb", "ab_abbb"], &["abb_ab", "ab_b"]);
    check(r"^\(a*\)*\1$", &["aa", ""], &["ab"]);
}

#[test]
fn edges_of_words() {
    check(r"\<put", &["put", "a.put"], &["input"]);
    check(r"put\>", &["put.a"], &["puts"]);
    check(r"\bput\b", &["a.put.b"], &["puts", "input"]);
    check(r"\Bput", &["input"], &["put"]);
    check(r"\`a", &["ab"], &["ba"]);
    check(r"a\'", &["ba"], &["ab"]);
    check(r"^\w\W\w$", &["a.b"], &["aab"]);
}

#[test]
fn what_is_no_pattern_is_refused() {
    refuses(r"a\(b", Problem::OpenGroup);
    refuses(r"a\)b", Problem::ClosedGroup);
    refuses("[", Problem::OpenBracket);
    refuses("[a", Problem::OpenBracket);
    refuses(r"a\{1", Problem::OpenInterval);
    refuses(r"a\{2,1\}", Problem::BadInterval);
    refuses(r"a\{x\}", Problem::BadInterval);
    refuses(r"\{1\}", Problem::NothingToRepeat);
    refuses("a**", Problem::NothingToRepeat);
    refuses("[b-a]", Problem::BadRange);
    refuses("[[:name:]]", Problem::NoSuchClass);
    refuses("[[.ab.]]", Problem::NoSuchElement);
    refuses(r"\1\(a\)", Problem::NoSuchGroup);
    refuses(r"\(a\1\)", Problem::NoSuchGroup);
    refuses(r"\(a\)\|\1", Problem::NoSuchGroup);
    refuses(r"a\", Problem::TrailingBackslash);
    refuses(r"a\{32768\}", Problem::TooLarge);
    refuses(r"\(a\{1000\}\)\{1000\}", Problem::TooLarge);
    refuses(&r"\(".repeat(100_000), Problem::TooLarge);
}

#[test]
fn a_costly_pattern_ends() {
    let name = "a".repeat(2000);
    check(r"\(a*\)*\(a*\)*\(a*\)*b", &[], &[&name]);
    check(r"\(a*\)*\(a*\)*b\1", &[], &[&name[..60]]);
}
