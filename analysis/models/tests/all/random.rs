//! Random formulas, gates and tables.

use proptest::prelude::*;

use ppt_models::{
    Baseline, Fit, FitOptions, Formula, FormulaError, Gate, GateError, ModelPlan, Resampling,
    Residuals, RunTable,
};

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-e]".prop_map(String::from),
        "[a-c][.][a-c]".prop_map(String::from),
        Just("\"odd name\"".to_owned()),
        (0u32..1000).prop_map(|number| number.to_string()),
        Just("2.5e-3".to_owned()),
    ];
    leaf.prop_recursive(4, 20, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/", ":"]), inner.clone())
                .prop_map(|(one, sign, other)| format!("({one}) {sign} {other}")),
            (inner.clone(), inner.clone()).prop_map(|(one, by)| format!("({one})^({by})")),
            inner.clone().prop_map(|term| format!("({term})**-2")),
            inner.clone().prop_map(|term| format!("log( {term} )")),
            inner.clone().prop_map(|term| format!("I(-{term})")),
            inner.prop_map(|term| format!("sqrt({term})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_is_read_again(left in expression(), right in expression()) {
        let text = format!("{left} ~ I({right}) + a*b*c");
        if let Ok(formula) = text.parse::<Formula>() {
            let written = formula.to_string();
            let again: Formula = written.parse().map_err(|it: FormulaError| {
                TestCaseError::fail(format!("{text} → {written}: {it}"))
            })?;
            prop_assert_eq!(&again, &formula, "{} → {}", text, written);
            let values = |name: &str| name.len() as f64 + f64::from(name.as_bytes()[0]);
            let (one, other) = (&formula.terms[0], &again.terms[0]);
            let (one, other) = (one.expression.value(&values), other.expression.value(&values));
            prop_assert!(one == other || (one.is_nan() && other.is_nan()), "{} {}", one, other);
        }
    }

    #[test]
    fn nothing_that_is_written_is_too_much(text in "[-~+*/^()\"a-zI0-9.,:%<>µ \\n]{0,80}") {
        if let Err(it) = text.parse::<Formula>() {
            prop_assert!(it.span.end <= text.len());
            prop_assert!(it.drawn(&text).contains('^'));
        }
        if let Err(it) = text.parse::<Gate>() {
            prop_assert!(it.drawn(&text).contains('^'));
        }
        drop(ModelPlan::parse(&text));
        drop(Baseline::from_json(&text));
    }

    #[test]
    fn nor_any_text_at_all(text in any::<String>()) {
        if let Err(it) = text.parse::<Formula>() {
            it.drawn(&text);
        }
        if let Err(it) = text.parse::<Gate>() {
            it.drawn(&text);
        }
        if let Err(it) = format!("cpu ~ {text}").parse::<Formula>() {
            it.drawn(&text);
        }
    }

    /// Any numbers give a fit whose residuals are orthogonal to the terms, or an error.
    #[test]
    fn residuals_are_orthogonal_to_terms(
        rows in prop::collection::vec((0.0f64..1e6, -1e3f64..1e3, -1e9f64..1e9), 0..40),
        formula in prop::sample::select(vec!["y ~ a", "y ~ 0 + a + b", "y ~ a + a^2 + b", "y ~ 1"]),
        integers in any::<bool>(),
    ) {
        let round = |it: f64| if integers { (it / 1e3).round() } else { it };
        let table = RunTable::new([
            ("a", rows.iter().map(|row| round(row.0)).collect::<Vec<_>>()),
            ("b", rows.iter().map(|row| round(row.1)).collect()),
            ("y", rows.iter().map(|row| round(row.2)).collect()),
        ]).unwrap();
        let formula: Formula = formula.parse().unwrap();
        let options = FitOptions { resampling: Resampling { count: 10, seed: 1 }, level: 0.9 };
        let Ok(fit) = Fit::new(&formula, &table, options) else { return Ok(()) };
        let length = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        for term in &formula.terms {
            let column: Vec<f64> = (0..table.rows())
                .map(|row| term.expression.value(&|name| table.column(name).unwrap()[row]))
                .collect();
            let product: f64 = column.iter().zip(&fit.residuals).map(|(a, b)| a * b).sum();
            let scale = length(&column) * length(fit.response());
            prop_assert!(product.abs() <= 1e-9 * scale, "{}: {} of {}", term, product, scale);
        }
        for (row, fitted) in fit.fitted.iter().enumerate() {
            let sum = fitted + fit.residuals[row];
            prop_assert!((sum - fit.response()[row]).abs() <= 1e-6 * (1.0 + sum.abs()));
        }
        for it in Residuals::from_fit(&fit).findings {
            prop_assert!(!it.to_string().contains("NaN"), "{}", it);
        }
        for it in &fit.coefficients {
            prop_assert!(it.interval.low <= it.estimate && it.estimate <= it.interval.high);
        }
    }
}

#[test]
fn brackets_have_an_end() {
    let deep = format!("cpu ~ {}n{}", "(".repeat(32), ")".repeat(32));
    assert!(deep.parse::<Formula>().is_ok());
    let deeper = format!("cpu ~ {}n{}", "(".repeat(33), ")".repeat(33));
    assert_eq!(
        deeper.parse::<Formula>().unwrap_err().to_string(),
        "more than 32 brackets are within each other"
    );
    let long = format!("cpu ~ n{}", " + n".repeat(2000));
    assert!(long.parse::<Formula>().unwrap_err().to_string().contains("at most 4096 are read"));
    let many = format!(
        "cpu ~ {}",
        (0..300).map(|power| format!("n^{power}")).collect::<Vec<_>>().join("+")
    );
    assert_eq!(many.parse::<Formula>().unwrap().terms.len(), 300);
    let gate: Result<Gate, GateError> = "x".repeat(2000).parse();
    assert!(gate.unwrap_err().to_string().contains("at most 1024 are read"));
}

#[test]
fn mistakes_have_carets() {
    let drawn = |text: &str| {
        let error = text.parse::<Formula>().unwrap_err();
        format!("{error}\n{}", error.drawn(text))
    };
    let cases = [
        ("cpu ~ n +", "expected a term, found the end\ncpu ~ n +\n         ^"),
        ("cpu n", "expected `*` or `/`, `+` or `-`, `^` or `~`, found `n`\ncpu n\n    ^"),
        ("~ n", "expected a term, found `~`\n~ n\n^"),
        (
            "cpu ~ n + lg(n)",
            "there is no function `lg`; there are: log, log2, log10, sqrt, exp, abs\n\
             cpu ~ n + lg(n)\n          ^^",
        ),
        (
            "cpu ~ n + n^2 + I(n^2)",
            "the term `n^2` is there twice\n\
             cpu ~ n + n^2 + I(n^2)\n                ^^^^^^",
        ),
        (
            "cpu ~ n - m",
            "only `- 1` may follow a minus here: a fit finds the sign of a term itself\n\
             cpu ~ n - m\n          ^",
        ),
        (
            "cpu ~ n + 3",
            "a number is no term: `1` keeps the constant, `0` takes it out\n\
             cpu ~ n + 3\n          ^",
        ),
        ("cpu ~ 0", "the formula has no term: there is nothing to fit\ncpu ~ 0\n^^^^^^^"),
    ];
    for (text, expected) in cases {
        assert_eq!(drawn(text), expected);
    }
    let read = |text: &str| text.parse::<Formula>().unwrap().to_string();
    assert_eq!(read("cpu~1+n+I(n^2)"), "cpu ~ 1 + n + n^2");
    assert_eq!(read("cpu ~ n - 1"), "cpu ~ 0 + n");
    assert_eq!(read("cpu / 2 ~ 0 + n*ln(n) + n**-1"), "cpu/2 ~ 0 + n*log(n) + n^(-1)");
    assert_eq!(read("job.handle ~ \"a b\""), "job.handle ~ 1 + \"a b\"");
}
