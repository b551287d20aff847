//! Who calls whom in the programs of `tests/programs`, as the interpreters name their functions. The benchmarks
//! judge profilers by the same tables.

/// Who may call whom: functions, each with its callers.
pub(crate) type Callers = [(&'static str, &'static [&'static str])];

/// Whether a function may call another, by a table of them and of who may call `spin`.
pub(crate) fn may_call(legal: &Callers, spinners: &[&str], caller: &str, name: &str) -> bool {
    match name {
        "spin" => spinners.contains(&caller),
        _ => legal.iter().any(|(callee, callers)| *callee == name && callers.contains(&caller)),
    }
}

/// `script.py`.
pub(crate) mod python {
    /// Who may call whom in `programs/script.py`; `*` is anybody of another file.
    pub(crate) const LEGAL: &super::Callers = &[
        ("<listcomp>", &["threads"]),
        // The body of a class.
        ("Worker", &["<module>"]),
        ("main", &["<module>"]),
        ("threads", &["main"]),
        ("forks", &["main"]),
        ("until", &["main", "forks", "*"]),
        ("chunks", &["main"]),
        ("shares", &["until", "chunks"]),
        ("one", &["shares"]),
        ("other", &["shares"]),
        ("half", &["one", "other"]),
        ("third", &["one", "other"]),
        ("fifth", &["one", "other"]),
        ("callbacks", &["until", "chunks"]),
        ("work", &["callbacks"]),
        ("__del__", &["callbacks"]),
        ("<lambda>", &["work"]),
        ("order", &["work"]),
        ("key", &["order", "<lambda>"]),
        ("consume", &["work"]),
        ("produce", &["consume"]),
        ("deep", &["until", "chunks"]),
        ("recurse", &["deep", "recurse"]),
        ("coroutines", &["until"]),
        ("tasks", &["coroutines", "*"]),
        ("middle", &["tasks", "*"]),
        ("leaf", &["middle"]),
        ("churn", &["until"]),
    ];

    /// Who may call `spin`, besides functions that are made.
    pub(crate) const SPINNERS: &[&str] =
        &["half", "third", "fifth", "key", "produce", "consume", "recurse", "leaf", "__del__"];
}

/// `script.rb`.
pub(crate) mod ruby {
    /// Who may call whom in `programs/script.rb`; `-` is nobody: fibers and threads begin with a block.
    pub(crate) const LEGAL: &super::Callers = &[
        ("<main>", &["-"]),
        ("<module:Helper>", &["<main>"]),
        ("<class:Number>", &["<main>"]),
        ("<class:Special>", &["<main>"]),
        ("until_end", &["<main>"]),
        ("chunks", &["<main>"]),
        ("nanoseconds", &["chunks"]),
        ("block in until_end", &["until_end"]),
        ("block (2 levels) in until_end", &["block in until_end"]),
        ("shares", &["block (2 levels) in until_end", "chunks"]),
        ("one", &["shares"]),
        ("other", &["shares"]),
        ("half", &["one", "other", "block (3 levels) in threads"]),
        ("third", &["one", "other", "block (3 levels) in threads"]),
        ("fifth", &["one", "other"]),
        ("callbacks", &["block (2 levels) in until_end", "chunks"]),
        ("order", &["callbacks"]),
        ("block in order", &["order"]),
        ("Number.of", &["block in order"]),
        ("Number#initialize", &["Number.of", "objects"]),
        ("Number#<=>", &["order", "Special#<=>"]),
        ("hashes", &["callbacks"]),
        ("block in hashes", &["hashes"]),
        ("objects", &["callbacks"]),
        ("Special#<=>", &["objects"]),
        ("Number#defined", &["objects"]),
        ("block (2 levels) in <class:Number>", &["Number#defined"]),
        ("Helper#helps", &["objects"]),
        ("Number#method_missing", &["objects"]),
        ("Number#respond_to_missing?", &["objects"]),
        ("Number#to_s", &["objects"]),
        ("guarded", &["callbacks"]),
        ("fails", &["guarded"]),
        ("rescue in guarded", &["guarded"]),
        ("ensure in guarded", &["guarded"]),
        ("block in guarded", &["guarded"]),
        ("texts", &["callbacks"]),
        ("texts in a text", &["texts"]),
        ("block in texts", &["texts", "called"]),
        ("called", &["texts"]),
        ("fibers", &["block (2 levels) in until_end"]),
        ("rescue in fibers", &["fibers"]),
        ("block in fibers", &["-"]),
        ("block (2 levels) in fibers", &["block in fibers"]),
        ("inner", &["block in fibers"]),
        ("block in inner", &["-"]),
        ("produce", &["block in inner"]),
        ("block in produce", &["produce"]),
        ("threads", &["block (2 levels) in until_end"]),
        ("block in threads", &["threads"]),
        ("block (2 levels) in threads", &["-"]),
        ("block (3 levels) in threads", &["block (2 levels) in threads"]),
        ("deep", &["block (2 levels) in until_end", "chunks"]),
        ("recurse", &["deep", "recurse"]),
        ("recurse_in_blocks", &["deep", "block in recurse_in_blocks"]),
        ("block in recurse_in_blocks", &["recurse_in_blocks"]),
        ("churn", &["block (2 levels) in until_end"]),
        ("block in churn", &["churn"]),
        ("block (2 levels) in churn", &["block in churn"]),
    ];

    /// The same of what stands in texts that are evaluated.
    pub(crate) const LEGAL_IN_TEXTS: &super::Callers = &[
        ("block (2 levels) in churn in a text", &["block (2 levels) in churn"]),
        ("made_inside in a text", &["block in churn"]),
    ];

    /// Who may call `spin`.
    pub(crate) const SPINNERS: &[&str] = &[
        "half",
        "third",
        "fifth",
        "block in order",
        "Number.of",
        "Number#initialize",
        "Number#<=>",
        "Number#to_s",
        "Number#defined",
        "block (2 levels) in <class:Number>",
        "Number#method_missing",
        "Helper#helps",
        "block in hashes",
        "guarded",
        "fails",
        "rescue in guarded",
        "ensure in guarded",
        "block in guarded",
        "block in texts",
        "texts in a text",
        "called",
        "block in produce",
        "inner",
        "fibers",
        "block (2 levels) in fibers",
        "recurse",
        "recurse_in_blocks",
        "made_inside in a text",
        "block (3 levels) in threads",
    ];
}

/// `script.php`.
pub(crate) mod php {
    /// Who may call whom in `programs/script.php`.
    pub(crate) const LEGAL: &super::Callers = &[
        ("main", &["<main>"]),
        ("until_end", &["main"]),
        ("chunks", &["main"]),
        ("cpu_seconds", &["until_end", "chunks", "main"]),
        ("{closure}", &["cpu_seconds", "array_map", "array_filter", "churn"]),
        ("getrusage", &["cpu_seconds"]),
        ("shares", &["until_end", "chunks"]),
        ("one", &["shares"]),
        ("other", &["shares"]),
        ("half", &["one", "other"]),
        ("third", &["one", "other"]),
        ("fifth", &["one", "other"]),
        ("callbacks", &["until_end", "chunks"]),
        ("order", &["callbacks"]),
        ("usort", &["order"]),
        ("by_key", &["usort"]),
        ("texts", &["callbacks"]),
        ("preg_replace_callback", &["texts"]),
        ("replace", &["preg_replace_callback"]),
        ("closures", &["callbacks"]),
        ("array_map", &["closures", "inside"]),
        ("array_filter", &["closures"]),
        ("magic", &["callbacks"]),
        // The method that there is none of stands for a moment, before `__call` takes its place.
        ("Number::method", &["magic"]),
        ("Number::other", &["magic"]),
        ("Number::__get", &["magic", "uses_local"]),
        ("Number::__call", &["magic"]),
        ("Number::__callStatic", &["magic"]),
        ("Number::__toString", &["magic"]),
        ("objects", &["callbacks"]),
        ("uses_local", &["objects"]),
        ("Ended::made", &["uses_local"]),
        ("Ended::__destruct", &["objects"]),
        ("class@anonymous::method", &["objects"]),
        ("guarded", &["callbacks"]),
        ("passes", &["guarded"]),
        ("throws", &["passes"]),
        ("Exception::__construct", &["throws"]),
        ("files", &["callbacks"]),
        ("included", &["<main>"]),
        ("function_exists", &["<main>"]),
        ("generators", &["until_end"]),
        ("delegates", &["generators"]),
        ("between", &["delegates"]),
        ("leaf", &["between"]),
        ("fibers", &["until_end"]),
        ("Fiber::__construct", &["fibers"]),
        ("inside", &["Fiber::start", "Fiber::resume"]),
        ("replaces", &["array_map"]),
        ("suspends", &["inside", "replaces"]),
        ("deep", &["until_end", "chunks"]),
        ("recurse", &["deep", "recurse"]),
        ("churn", &["until_end"]),
    ];

    /// The same of functions that several may call, or functions with numbers in their names.
    pub(crate) const MORE: &super::Callers = &[
        ("Fiber::start", &["fibers"]),
        ("Fiber::resume", &["fibers"]),
        ("Fiber::suspend", &["suspends"]),
        ("Fiber::isTerminated", &["fibers"]),
        ("str_repeat", &["churn"]),
        ("printf", &["main", "chunks"]),
        // What is included, and what the text of an eval is when it runs.
        ("<main>", &["files"]),
        ("<eval>", &["churn", "<main>"]),
    ];

    /// Who may call `spin`.
    pub(crate) const SPINNERS: &[&str] = &[
        "half",
        "third",
        "fifth",
        "by_key",
        "replace",
        "{closure}",
        "Number::__get",
        "Number::__call",
        "Number::__callStatic",
        "Number::__toString",
        "Ended::made",
        "Ended::__destruct",
        "class@anonymous::method",
        "throws",
        "passes",
        "guarded",
        "<main>",
        "included",
        "leaf",
        "between",
        "delegates",
        "generators",
        "suspends",
        "fibers",
        "recurse",
        "made_inside_0",
        "made_inside_1",
        "made_inside_2",
        "made_inside_3",
        "made_inside_4",
        "eval",
        "main",
        "until_end",
        "cpu_seconds",
    ];
}
