//! `tracing_fields(names, types, a, b, c, d, x, y)`: the numbers of a frame of the crate `ppt-tracing`,
//! with the names of their fields, as text: `status=200 ok=true`. `sources/tracing/tracing.frame`
//! describes `types`.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::error::Result;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(super) fn function() -> ScalarUDF {
    use DataType::{Binary, Float64, Int64, Utf8};
    let types = vec![Utf8, Binary, Int64, Int64, Int64, Int64, Float64, Float64];
    ScalarUDF::new_from_impl(TracingFields {
        signature: Signature::exact(types, Volatility::Immutable),
    })
}

/// An expression for the numbers of a frame with the names of their fields.
pub(crate) fn tracing_fields(arguments: Vec<Expr>) -> Expr {
    function().call(arguments)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TracingFields {
    signature: Signature,
}

impl ScalarUDFImpl for TracingFields {
    fn name(&self) -> &str {
        "tracing_fields"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(texts, Vec::new())(&args.args)
    }
}

fn texts(columns: &[ArrayRef]) -> Result<ArrayRef> {
    let names = columns[0].as_string::<i32>();
    let types = columns[1].as_binary::<i32>();
    let whole = [2, 3, 4, 5].map(|column| columns[column].as_primitive::<Int64Type>());
    let floats = [6, 7].map(|column| columns[column].as_primitive::<Float64Type>());
    let mut texts = StringBuilder::new();
    for row in 0..types.len() {
        if types.is_null(row) {
            texts.append_null();
            continue;
        }
        let names = if names.is_null(row) { "" } else { names.value(row) };
        let numbers = FrameNumbers {
            types: types.value(row),
            whole: whole.map(|column| column.value(row)),
            floats: floats.map(|column| column.value(row)),
        };
        texts.append_value(numbers.text(names));
    }
    Ok(Arc::new(texts.finish()))
}

/// The numbers of one frame.
struct FrameNumbers<'a> {
    types: &'a [u8],
    whole: [i64; 4],
    floats: [f64; 2],
}

impl FrameNumbers<'_> {
    /// Each number with its name. A field without a known name is named by its position: `#3`.
    fn text(&self, names: &str) -> String {
        let mut text = String::new();
        for (index, code) in self.types.iter().enumerate() {
            let (position, number) = (code >> 3, code & 7);
            let whole = self.whole.get(index).copied();
            let value = match (number, whole, self.floats.get(index.wrapping_sub(4))) {
                (1, Some(whole), _) => (whole as u64).to_string(),
                (2, Some(whole), _) => whole.to_string(),
                (4, Some(whole), _) => (whole != 0).to_string(),
                (3, None, Some(float)) => float.to_string(),
                _ => continue,
            };
            if !text.is_empty() {
                text.push(' ');
            }
            // Writing into a String does not fail.
            let _ = match names.split(',').nth(position.into()).filter(|name| !name.is_empty()) {
                Some(name) => write!(text, "{name}={value}"),
                None => write!(text, "#{position}={value}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::FrameNumbers;

    #[test]
    fn numbers_have_the_names_of_their_fields() {
        let types = [1 << 3 | 1, 2 << 3 | 2, 9 << 3 | 4, 0, 3 << 3 | 3, 0];
        let numbers = FrameNumbers { types: &types, whole: [-1, -5, 1, 7], floats: [0.25, 1.0] };
        let text = numbers.text("message,status,delta,share");
        assert_eq!(text, "status=18446744073709551615 delta=-5 #9=true share=0.25");
        let hostile = FrameNumbers { types: &[0xff, 3, 1, 1, 1, 1, 1, 1], ..numbers };
        assert_eq!(hostile.text(""), "#0=1 #0=7", "invalid codes are left out");
    }
}
