//! The table for people and the JSON for machines, from the same rows.

use serde_json::{Value, json};

use super::measure::{Finding, Row};

/// Prints medians, ratios to the first contender that was measured, and whether marks were reached.
pub(crate) fn table(rows: &[Row]) {
    for row in rows {
        println!("\n{}", row.work);
        let base = row.results.iter().find_map(|(name, _)| row.median(name));
        for (name, finding) in &row.results {
            match finding {
                Finding::Median(median) => {
                    let ratio = base.map_or(1.0, |base| median.as_secs_f64() / base.as_secs_f64());
                    println!("  {name:<28} {:>12.3} ms {ratio:>9.3} x", median.as_secs_f64() * 1e3);
                }
                Finding::Missing(why) => println!("  {name:<28} missing: {why}"),
            }
        }
        for mark in &row.marks {
            println!("  mark: {mark}: {}", reached(mark.reached(row)));
        }
    }
}

fn reached(verdict: Option<bool>) -> &'static str {
    match verdict {
        Some(true) => "reached",
        Some(false) => "NOT REACHED",
        None => "cannot tell, one side is missing",
    }
}

/// Medians in nanoseconds; null for what is missing, with the reason.
pub(crate) fn json(rows: &[Row]) -> Value {
    rows.iter().map(row_json).collect()
}

fn row_json(row: &Row) -> Value {
    let results: Vec<Value> = row.results.iter().map(|(name, finding)| finding_json(name, finding)).collect();
    let marks: Vec<Value> = row
        .marks
        .iter()
        .map(|mark| json!({"mark": mark.to_string(), "reached": mark.reached(row)}))
        .collect();
    json!({"work": row.work, "results": results, "marks": marks})
}

fn finding_json(name: &str, finding: &Finding) -> Value {
    match finding {
        Finding::Median(median) => json!({"name": name, "median_ns": median.as_nanos() as u64}),
        Finding::Missing(why) => json!({"name": name, "median_ns": null, "missing": why}),
    }
}
