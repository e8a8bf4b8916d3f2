//! `bucket(ts, '100ms')`: the beginning of the bucket of time that contains `ts`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int64Type, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Bucket { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bucket {
    signature: Signature,
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &str {
        "bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, width] = types else {
            return plan_err!("bucket takes a time and a width: bucket(ts, '100ms')");
        };
        let value = match value {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
            ty if ty.is_integer() || ty.is_null() => DataType::Int64,
            ty => return plan_err!("bucket takes a time or whole nanoseconds, not {ty}"),
        };
        let width = match width {
            ty if ty.is_integer() => DataType::Int64,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
            ty => return plan_err!("the width of a bucket is text such as '100ms', not {ty}"),
        };
        Ok(vec![value, width])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let width = match &args.args[1] {
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) => nanoseconds(text)?,
            ColumnarValue::Scalar(ScalarValue::Int64(Some(ns))) => *ns,
            _ => return exec_err!("the width of a bucket is the same for all rows"),
        };
        if width <= 0 {
            return exec_err!("the width of a bucket is more than 0, not {width} ns");
        }
        make_scalar_function(|values| buckets(&values[0], width), Vec::new())(&args.args[..1])
    }
}

fn buckets(values: &ArrayRef, width: i64) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Timestamp(_, _) => {
            let floors = floors(values.as_primitive::<TimestampNanosecondType>(), width);
            Arc::new(floors.with_data_type(values.data_type().clone()))
        }
        _ => {
            let values = cast(values, &DataType::Int64)?;
            Arc::new(floors(values.as_primitive::<Int64Type>(), width))
        }
    })
}

fn floors<T: ArrowPrimitiveType<Native = i64>>(
    values: &PrimitiveArray<T>,
    width: i64,
) -> PrimitiveArray<T> {
    // Euclidean, so that buckets before the epoch are as wide as the others.
    values.unary_opt(|value| value.div_euclid(width).checked_mul(width))
}

fn nanoseconds(text: &str) -> Result<i64> {
    match humantime::parse_duration(text) {
        Ok(width) => Ok(i64::try_from(width.as_nanos()).unwrap_or(i64::MAX)),
        Err(error) => exec_err!("`{text}` is no width of a bucket, such as 100ms or 5s: {error}"),
    }
}
