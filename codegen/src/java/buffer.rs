//! `Ppt`, the buffer's interface for programs, and `PptRuntime`, through which the classes call C.

use super::comment::{banner, javadoc};
use super::native::{ALLOW, HASH, HASH_U64, HASH128, Native, PREPARE, method, of_stamp};
use crate::model::{ABOUT_LENGTH, BufferModel};
use crate::text::GeneratedText;

const RUNTIME: &str = include_str!("../../runtime/java/runtime.java");

pub(super) fn runtime(model: &BufferModel<'_>, natives: &[Native]) -> String {
    let mut out = GeneratedText::new();
    banner(model, "The way to C", &mut out);
    out.open("final class PptRuntime {");
    out.line(&format!("private static final java.lang.String BUFFER = \"{}\";", model.buffer()));
    out.line(&format!("private static final java.lang.String LIBRARY = \"{}_jni\";", model.stem));
    out.block(RUNTIME);
    out.blank();
    out.line("// Defined by the library. The name of the first one is of just these.");
    for native in natives {
        out.line(&native.declaration());
    }
    out.blank();
    out.open("private static java.nio.ByteBuffer page(int part) {");
    let page = natives.first().map_or("", |native| native.name.as_str());
    out.line(&format!("return {page}(part);"));
    out.close("}");
    out.close("}");
    out.finish()
}

pub(super) fn public(model: &BufferModel<'_>) -> String {
    let mut out = GeneratedText::new();
    banner(model, "What a program asks", &mut out);
    let about =
        format!("Buffer {{@code {}}}, whose frames {{@code ppt attach}} reads.", model.buffer());
    javadoc(&about, "", &[], &mut out);
    out.open("public final class Ppt {");
    out.open("private Ppt() {");
    out.close("}");
    out.blank();
    let mut function = |about: &str, tags: &[String], head: &str, body: &[&str]| {
        javadoc(about, "", tags, &mut out);
        out.open(&format!("public static {head} {{"));
        out.lines(body.iter().copied());
        out.close("}");
        out.blank();
    };
    function(
        "{@return whether somebody is attached: a load and a branch}",
        &[],
        "boolean on()",
        &["return PptRuntime.isOn();"],
    );
    function(
        "{@return why the library could not be loaded, so that no frames are written; null if it is there}",
        &[],
        "java.lang.Throwable failure()",
        &["return PptRuntime.FAILURE;"],
    );
    function(
        "Does the slow work of this thread's first frame in advance.",
        &[],
        "void prepare()",
        &["if (PptRuntime.isOn())", &format!("    PptRuntime.{PREPARE}();")],
    );
    function(
        "Lets every process of this user attach, even if Yama allows only ancestors.",
        &[],
        "void allowAttach()",
        &["if (PptRuntime.PRESENT)", &format!("    PptRuntime.{ALLOW}();")],
    );
    for stamp in &model.stamps {
        let unit = if stamp.clock.is_some() { ", in nanoseconds" } else { "" };
        let about = stamp.about();
        let about = about[..1].to_ascii_lowercase() + &about[1..];
        let about = format!("{{@return {about}{unit}; 0 while nobody is attached}}");
        let head = format!("long {}()", method(&stamp.name));
        let body = format!("return PptRuntime.isOn() ? PptRuntime.{}() : 0;", of_stamp(stamp));
        function(&about, &[], &head, &[&body]);
        if let Some(length) = stamp.length() {
            let head = format!("long {}(long start, long end)", method(&length));
            let body =
                format!("return PptRuntime.PRESENT ? PptRuntime.ppt_{length}(start, end) : -1;");
            let tags = [
                "@param start the earlier stamp",
                "@param end the later one",
                "@return nanoseconds",
            ];
            function(ABOUT_LENGTH, &tags.map(String::from), &head, &[&body]);
        }
    }
    if model.hashes {
        hashes(&mut function);
    }
    out.close("}");
    out.finish()
}

fn hashes(function: &mut impl FnMut(&str, &[String], &str, &[&str])) {
    let data = ["@param data what the identity is of".to_owned()];
    let needs = "if (!PptRuntime.PRESENT || data == null)";
    function(
        "{@return the hash of bytes, for fields of type {@code hash}: XXH3, 64 bits; 0 of null}",
        &data,
        "long hash(byte[] data)",
        &[needs, "    return 0;", &format!("return PptRuntime.{HASH}(data);")],
    );
    function(
        "{@return the hash of the 8 bytes of a number}",
        &["@param number what the identity is of".into()],
        "long hashU64(long number)",
        &[&format!("return PptRuntime.PRESENT ? PptRuntime.{HASH_U64}(number) : 0;")],
    );
    function(
        "{@return the same for fields of type {@code hash128}, as 16 bytes}",
        &data,
        "byte[] hash128(byte[] data)",
        &[needs, "    return new byte[16];", &format!("return PptRuntime.{HASH128}(data);")],
    );
}
