use super::*;

#[track_caller]
fn check(names: &[(&str, &str)]) {
    for (mangled, expect) in names {
        assert_eq!(demangle(mangled), *expect, "{mangled}");
    }
}

#[test]
fn rust_names_lose_their_hash() {
    check(&[
        ("_ZN4core3fmt5write17h01e1d65ba6a1f4ceE", "core::fmt::write"),
        ("_ZN4core3fmt5write17h01e1d65ba6a1f4ceE.llvm.1234567890", "core::fmt::write"),
        (
            "_ZN60_$LT$alloc..vec..Vec$LT$u8$GT$$u20$as$u20$std..io..Write$GT$5write17h0123456789abcdefE",
            "<alloc::vec::Vec<u8> as std::io::Write>::write",
        ),
        ("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"),
        ("_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>"),
        ("_RNvCs1234_7mycrate4main.llvm.99", "mycrate::main"),
    ]);
}

#[test]
fn cpp_names_look_as_cxxfilt_prints_them() {
    check(&[
        ("_ZNSt6vectorIiSaIiEED2Ev", "std::vector<int, std::allocator<int> >::~vector()"),
        ("_ZN12_GLOBAL__N_16helperEi", "(anonymous namespace)::helper(int)"),
        ("_ZN1A3fooILb1ELj3ELl4ELm5ELy6ELx7EEEvv", "void A::foo<true, 3u, 4l, 5ul, 6ull, 7ll>()"),
        ("_Z1fILin3EEvv", "void f<-3>()"),
        ("_ZNK4SpanptEv", "Span::operator->() const"),
        ("_ZlsRSoRK4Span", "operator<<(std::ostream&, Span const&)"),
        (
            "_ZZ4mainENKUlRKT_E_clIiEEDaS1_",
            "auto main::{lambda(auto:1 const&)#1}::operator()<int>(int const&) const",
        ),
        ("_ZTv0_n24_N4Span3runEv", "virtual thunk to Span::run()"),
        ("_ZThn16_N4Span3runEv", "non-virtual thunk to Span::run()"),
    ]);
}

#[test]
fn each_type_of_a_pack_has_what_is_around_the_pack() {
    check(&[
        ("_Z4hashIJibEEvDpRKT_", "void hash<int, bool>(int const&, bool const&)"),
        (
            "_Z1fIJRiOlmEEvDpOT_",
            "void f<int&, long&&, unsigned long>(int&, long&&, unsigned long&&)",
        ),
        (
            "_Z1fIJM1AKFvvEiEEvDpOT_",
            "void f<void (A::*)() const, int>(void (A::*&&)() const, int&&)",
        ),
        (
            "_ZN1A1fIJRA4_KciEEEvDpOT_.cold",
            "void A::f<char const (&) [4], int>(char const (&) [4], int&&) [clone .cold]",
        ),
    ]);
}

#[test]
fn what_is_within_a_function_goes_without_its_return_type() {
    check(&[
        ("_ZZN1A1fIiEEbT_ENKUlcE_clEc", "A::f<int>(int)::{lambda(char)#1}::operator()(char) const"),
        ("_ZZN1A1fIiEEbT_E5table", "A::f<int>(int)::table"),
    ]);
}

#[test]
fn function_types_have_a_blank_behind_what_they_return() {
    check(&[
        ("_Z3runSt8functionIFN1a5ErrorERNS0_5GraphEEE", "run(std::function<a::Error (a::Graph&)>)"),
        (
            "_Z3runSt8functionIFivEES_IFPKcvEE",
            "run(std::function<int ()>, std::function<char const* ()>)",
        ),
        ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"),
    ]);
}

#[test]
fn constructor_templates_keep_their_first_parameter() {
    check(&[
        ("_ZN1AC1IiEET_", "A::A<int>(int)"),
        ("_ZN1AC2IiEET_i", "A::A<int>(int, int)"),
        ("_ZN1AIlEC2IiEEPKcT_.cold", "A<long>::A<int>(char const*, int) [clone .cold]"),
        ("_ZN1AC1ILi3EEEv", "A::A<3>()"),
        ("_ZN1AcvT_IiEEv", "A::operator int<int>()"),
    ]);
}

#[test]
fn empty_packs_leave_nothing() {
    check(&[
        ("_ZSt10_ConstructIiJEEvPT_DpOT0_", "void std::_Construct<int>(int*)"),
        ("_Z4callIJEEvDpOT_", "void call<>()"),
        ("_ZN1AC1IJLm0EEJEEEi", "A::A<0ul>(int)"),
    ]);
}

#[test]
fn a_name_stays_readable_when_its_parameters_are_not_understood() {
    let swap = "_ZSt4swapIcENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EEEE5valueEvE4typeERS4_SE_";
    check(&[(swap, "std::swap<char>")]);
}

#[test]
fn what_the_demangler_gets_wrong_is_put_right() {
    check(&[
        (
            "_ZNK10__cxxabiv121__vmi_class_type_info11__do_upcastEPKNS_17__class_type_infoEPKvRNS1_15__upcast_resultE",
            "__cxxabiv1::__vmi_class_type_info::__do_upcast(__cxxabiv1::__class_type_info const*, void const*, __cxxabiv1::__class_type_info::__upcast_result&) const",
        ),
        ("_Z1gRKN1A1BES2_", "g(A::B const&, A::B const&)"),
        ("_ZNSi5seekgESt4fposI11__mbstate_tE", "std::istream::seekg(std::fpos<__mbstate_t>)"),
        ("_ZNSd4swapERSd", "std::iostream::swap(std::iostream&)"),
        ("_Z4sizeILm51EEmRAT__Kc", "unsigned long size<51ul>(char const (&) [51ul])"),
        ("_ZZNK1A1fEvENKUlvE_clEv", "A::f() const::{lambda()#1}::operator()() const"),
    ]);
}

#[test]
fn compiler_suffixes_stay_readable() {
    check(&[
        ("_Z3foov.cold", "foo() [clone .cold]"),
        ("_Z3foov.part.0", "foo() [clone .part.0]"),
        ("parse.constprop.0", "parse.constprop.0"),
        ("parse.isra.0.cold", "parse.isra.0.cold"),
    ]);
}

#[test]
fn cpp_names_are_not_taken_for_rust() {
    // The last part is 17 bytes long but no hash; an anonymous namespace begins the path.
    check(&[
        ("_ZN12_GLOBAL__N_117hello_world_helloEv", "(anonymous namespace)::hello_world_hello()"),
        ("_ZN1a17hxyzxyzxyzxyzxyzxEv", "a::hxyzxyzxyzxyzxyzx()"),
    ]);
}

#[test]
fn malformed_names_stay_as_they_are() {
    check(&[
        ("", ""),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_R", "_R"),
        ("main", "main"),
        ("_Zx", "_Zx"),
    ]);
    let mangled = "_ZNSt6vectorIN12_GLOBAL__N_15ShapeESaIS1_EEC2ISt4pairIS1_iEEERKT_OS3_";
    for len in 0..mangled.len() {
        let cut = demangle(&mangled[..len]).len();
        assert!(cut >= len.min(2), "{len}");
    }
}

#[test]
fn hostile_names_end_within_bounds() {
    // Each S<n>_ pair doubles the output: 2^40 characters without a bound.
    let mut doubling = String::from("_Z1fIiE");
    let id = |n: usize| match n {
        0 => "S_".to_owned(),
        n => format!("S{}_", char::from_digit(n as u32 - 1, 36).unwrap().to_ascii_uppercase()),
    };
    for n in 0..30 {
        doubling.push_str(&format!("1aI{0}{0}E", id(n)));
    }
    let deep = format!("_Z1f{}i", "P".repeat(10_000));
    let nested = format!("_RNvC1a{}", "NtN".repeat(3000));
    let long = format!("_Z{}", "1a".repeat(MAX_NAME_LEN));
    for name in [doubling, deep, nested, long] {
        assert!(demangle(&name).len() <= name.len().max(MAX_NAME_LEN));
    }
}

#[test]
fn suffixes_are_told_from_dots_of_a_path() {
    let trait_method = "_ZN31_$LT$rr..A$u20$as$u20$rr..T$GT$2go17h03e3f209ba88c4c4E";
    assert_eq!(demangle(trait_method), "<rr::A as rr::T>::go");
    let cases = [
        (trait_method.to_owned(), trait_method),
        (format!("{trait_method}.llvm.123"), trait_method),
        ("_RNvC2rr4work.llvm.9".to_owned(), "_RNvC2rr4work"),
        ("_ZN12_GLOBAL__N_15parseEPKc.part.0".to_owned(), "_ZN12_GLOBAL__N_15parseEPKc"),
        ("do_work.constprop.0".to_owned(), "do_work"),
        ("plain".to_owned(), "plain"),
    ];
    for (name, expect) in cases {
        assert_eq!(without_suffix(name.as_bytes()), expect.as_bytes(), "{name}");
    }
}
