//! `function_of(caller_symbol)`: the function in the name of an address, without the offset.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use ppt_tables::function_part;

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(FunctionOf {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// An expression for the functions in the names of `symbol`.
pub(crate) fn function_of(symbol: Expr) -> Expr {
    function().call(vec![symbol])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FunctionOf {
    signature: Signature,
}

impl ScalarUDFImpl for FunctionOf {
    fn name(&self) -> &str {
        "function_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Dictionary(_, values)] if **values == DataType::Utf8 => Ok(types.to_vec()),
            [ty] if ty.is_string() || ty.is_null() => Ok(vec![DataType::Utf8]),
            _ => plan_err!("function_of takes the name of an address: function_of(caller_symbol)"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(|names| functions(&names[0]), Vec::new())(&args.args)
    }
}

fn functions(names: &ArrayRef) -> Result<ArrayRef> {
    // Each name of a dictionary is converted only once.
    if let Some(dictionary) = names.as_any_dictionary_opt() {
        let functions = functions(dictionary.values())?;
        return Ok(cast(&dictionary.with_values(functions), &DataType::Utf8)?);
    }
    let names = cast(names, &DataType::Utf8)?;
    let functions = names.as_string::<i32>().iter().map(|name| name.map(function_part));
    Ok(Arc::new(functions.collect::<StringArray>()))
}
