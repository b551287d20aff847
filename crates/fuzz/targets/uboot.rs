//! U-Boot's traces, maps and rules: any bytes are refused, or make trees and files that add up.
#![no_main]

use std::io::{Cursor, sink};

use flame_profile::SiblingOrder;
use flame_uboot::{
    FtraceKind, Functions, Making, Measure, Proftool, Reading, Rules, SymbolMap, Trace, follow,
    proftool_rules, write_ftrace,
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut parts = flame_fuzz::parts(input);
    let mut next = || parts.next().unwrap_or_default().to_vec();
    let (trace, map, rules) = (next(), next(), next());
    mended(&trace, &map, &rules);
    let rules = proftool_rules(&rules).ok();
    let Ok(mut proftool) = Proftool::open(Cursor::new(trace), &map) else { return };
    for measure in [Measure::Calls, Measure::Time] {
        let graph = proftool.flame_graph(measure).expect("memory can be read");
        graph.write(&proftool, &mut sink()).expect("a sink takes all");
    }
    for kind in [FtraceKind::Function, FtraceKind::FuncGraph] {
        let written = proftool.write_ftrace(kind, rules.as_ref(), &mut sink());
        assert!(written.expect("memory can be read").events <= proftool.count());
    }
});

fn mended(trace: &[u8], map: &[u8], rules: &[u8]) {
    let rules = Rules::parse(rules, Reading::Whole).ok();
    let Ok(mut trace) = Trace::open(Cursor::new(trace.to_vec())) else { return };
    let Ok(map) = SymbolMap::parse(map, trace.layout().site_len()) else { return };
    let Ok(chunk) = trace.calls(None) else { return };
    let mut functions = Functions::new(Some(&map), rules.as_ref());
    let followed = follow(&mut trace, chunk, &mut functions, Making::Chart);
    let followed = followed.expect("memory can be read");
    let tree = followed.graph.tree(Measure::Time, &functions, SiblingOrder::Name);
    let chart = followed.chart.expect("it was asked for").finish();
    let facts = followed.facts;
    assert_eq!(tree.total().0 + followed.graph.outside(), facts.span, "time was lost");
    assert!(chart.total().0 <= facts.span, "time was made");
    let calls = followed.graph.tree(Measure::Calls, &functions, SiblingOrder::First);
    assert_eq!(calls.total().0 + followed.graph.excluded_calls(), facts.entries);
    let profile = followed.graph.profile(Measure::Time, &functions);
    assert_eq!(profile.total(1), tree.total());
    for kind in [FtraceKind::Function, FtraceKind::FuncGraph] {
        let mut functions = Functions::new(Some(&map), rules.as_ref());
        let followed = follow(&mut trace, chunk, &mut functions, Making::Events(kind));
        let plan = followed.expect("memory can be read").plan.expect("it was asked for");
        let written = write_ftrace(&mut trace, chunk, &mut functions, plan, &mut sink());
        let written = written.expect("memory can be read, and the plan is that of the records");
        let all = written.events + written.missing + written.excluded;
        assert_eq!(all, facts.entries + facts.exits);
    }
}
