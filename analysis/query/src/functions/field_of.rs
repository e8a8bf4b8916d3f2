//! `field_of(fields, 'status')`: the value of a field in a text such as `status=200 ok=true`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions::utils::make_scalar_function;
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
        make_scalar_function(values, Vec::new())(&args.args)
    }
}

fn values(args: &[ArrayRef]) -> Result<ArrayRef> {
    let pairs = args[0].as_string::<i32>().iter().zip(args[1].as_string::<i32>());
    let values = pairs.map(|(text, name)| value(text?, name?));
    Ok(Arc::new(values.collect::<StringArray>()))
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
