//! `field_of(fields, 'status')`: the value of a field in a text such as `status=200 ok=true`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(super) fn function() -> ScalarUDF {
    let types = vec![DataType::Utf8, DataType::Utf8];
    ScalarUDF::new_from_impl(FieldOf { signature: Signature::exact(types, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FieldOf {
    signature: Signature,
}

impl ScalarUDFImpl for FieldOf {
    fn name(&self) -> &str {
        "field_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let texts = args.args[0].to_array(rows)?;
        let names = args.args[1].to_array(rows)?;
        let pairs = texts.as_string::<i32>().iter().zip(names.as_string::<i32>());
        let values: StringArray = pairs
            .map(|(text, name)| text.zip(name).and_then(|(text, name)| value(text, name)))
            .collect();
        Ok(if scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(values))
        })
    }
}

/// The value of `name`, to the next space.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let of_name = |word: &'a str| word.strip_prefix(name)?.strip_prefix('=');
    text.split(' ').find_map(of_name)
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_value_ends_at_a_space() {
        let text = "status=200 statuses=3 path=/a=b";
        assert_eq!(value(text, "status"), Some("200"));
        assert_eq!(value(text, "path"), Some("/a=b"));
        assert_eq!((value(text, "stat"), value(text, "")), (None, None));
    }
}
