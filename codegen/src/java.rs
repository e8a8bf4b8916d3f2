//! Java: a class for each frame, enum, counter and histogram, and the C library that they call, on top of the C
//! output. Each frame is passed by one call.

mod buffer;
mod comment;
mod enums;
mod frames;
mod holder;
mod jni;
mod metrics;
mod native;
mod passing;
mod spelling;
mod statements;

use ppt_frame_dsl::Declared;
use ppt_frame_dsl::names::upper_camel;

use self::spelling::NESTED;
use crate::c::C;
use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// The classes of every package.
const OF_PACKAGE: [&str; 2] = ["Ppt", "PptRuntime"];
/// Names that arguments of a frame's methods would hide, and a method of Object that a setter cannot override.
const IN_METHODS: [&str; 3] = ["java", "PptRuntime", "wait"];
/// The largest number of values of an enum: the JVM limits the code that makes the constants.
const MAX_CONSTANTS: usize = 2500;

/// Writes `STEM.h`, `STEM.c`, `STEM_jni.c`, and the classes in the folder of their package.
pub(crate) struct Java;

impl Emitter for Java {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let mut outputs = C.emit(model);
        let natives = native::natives(model);
        let text = jni::emit(model, &natives);
        outputs.push(GeneratedFile { name: format!("{}_jni.c", model.stem), text });
        let mut class = |name: &str, text: String| {
            let folder = model.package().replace('.', "/");
            outputs.push(GeneratedFile { name: format!("{folder}/{name}.java"), text });
        };
        class("Ppt", buffer::public(model));
        class("PptRuntime", buffer::runtime(model, &natives));
        for declared in &model.schema.enums {
            class(&upper_camel(&declared.name), enums::emit(model, declared));
        }
        for frame in &model.frames {
            class(&upper_camel(frame.name), frames::emit(model, frame));
        }
        for metric in &model.metrics {
            class(&upper_camel(&metric.name), metrics::emit(model, metric));
        }
        outputs
    }

    fn takes(&self, _model: &BufferModel<'_>, declared: Declared, name: &str) -> bool {
        match declared {
            Declared::Enum(_) | Declared::Frame(_) | Declared::Metric(_) => {
                let class = upper_camel(name);
                OF_PACKAGE.contains(&&*class) || NESTED.contains(&&*class)
            }
            Declared::Field(..) => IN_METHODS.contains(&name),
            Declared::Buffer | Declared::Value(..) => false,
        }
    }

    fn refuses(&self, model: &BufferModel<'_>) -> Option<String> {
        let large =
            model.schema.enums.iter().find(|declared| declared.values.len() > MAX_CONSTANTS)?;
        Some(format!(
            "enum `{}` has {} values, and an enum of Java can have {MAX_CONSTANTS}: \
             make the field an integer",
            large.name,
            large.values.len()
        ))
    }
}
