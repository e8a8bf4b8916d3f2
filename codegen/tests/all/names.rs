//! Frame files declare names that the generated code uses itself, wherever a name can be. The output compiles, or a
//! diagnostic refuses the name.

use crate::support::compiler::{Compiler, Dialect, SYNTAX};
use crate::support::go::Go;
use crate::support::java::Jdk;
use crate::support::node::Node;
use crate::support::python::Python;
use ppt_codegen::{GenerateError, Language};

/// Words of the fixed texts and of the code that is generated from schemas.
const OURS: &str = "add allow allow_attach array at begin bytes claim clear clock close commit \
    control descriptor enabled end enums exec exit f fields fill find frame frames free from \
    gate geometry give_back i join map mapped mapping methods module names nested nonce now \
    now_monotonic now_realtime now_tsc observe of off on open own prepare process put py py_on python refuse \
    rest s scope scope_of self set slots stamp start state t text thread ticks unload value values words \
    write write_x";
/// Words in the middle of generated names, where the name of a buffer may be.
const BUFFERS: &str =
    "allow commit end enums f fields frame now on py prepare scope_of start write_x";

/// Such words that differ so little from others that one file cannot have both.
const MORE: &str = "Fill Step Values f_ on_";

const CLOCKS: &str = "option time ns realtime;";

/// Names that the classes of Java use: those of its library, and those inside the class of a frame.
const JAVAS: &str = "abandon accept class ends equals frame_ hash_code java java_lang_String number object \
    of ordinal PptRuntime scope_ string value_of wait";

/// Names that a module of Node uses: its exports, and names of JavaScript and of its objects.
const NODES: &str = "Array ArrayBufferView BigInt Buffer Error Number Object Set Symbol allowAttach await \
    constructor exports let module prototype require toString";

/// Names that a package of Go uses: its exports, its imports, and words of Go.
const GOS: &str = "At Hash Int append atomic byte c cgo chan claim_ copy defer error func go \
    import init int64 len main map nil ppt2 prepare_ range scope_ string struct time type unsafe \
    utf8 value var";

/// Frames, fields, an enum and values of these names. The statement names the buffer; without one, the file does.
fn frames(buffer: &str, types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\n{buffer}\n");
    text += &format!("enum E : i32 {{ {} }}\n", members.join(", "));
    for name in types {
        text += &format!("frame {name} {{ E e; interval time x; time y @clock(monotonic); }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member};")).collect();
    text + &format!("frame all {{ {} }}\n", fields.join(" "))
}

/// Frames of spans with these names.
fn spans(types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\n");
    for name in types {
        text += &format!("frame {name} @span {{ u64 of @key; time x; }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member} @key;")).collect();
    text + &format!("frame all @span {{ {} }}\n", fields.join(" "))
}

/// Frames of chains with these names, whose steps are `steps`.
fn chains(types: &[&str], members: &[&str], steps: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\n");
    for name in types {
        text += &format!("frame {name} @chain(of, off) {{ u64 of @key; time x; }}\n");
    }
    let fields: Vec<String> = members.iter().map(|member| format!("i32 {member} @key;")).collect();
    text + &format!("frame all @chain({}) {{ {} }}\n", steps.join(", "), fields.join(" "))
}

/// Points with these names.
fn points(types: &[&str], members: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\n");
    for name in types {
        text += &format!("frame {name} @point {{ hash of @in(of); time x; }}\n");
    }
    let ins = ["@in(of)"].into_iter().chain(std::iter::repeat(""));
    let fields = members.iter().zip(ins).map(|(text, side)| format!("hash {text} @raw {side};"));
    text + &format!("frame all @point {{ {} }}\n", fields.collect::<String>())
}

/// Frames of every kind, with a field of every enum.
fn enums(names: &[&str]) -> String {
    let mut text = format!("{CLOCKS}\n");
    for name in names {
        text += &format!("enum {name} : i32 {{ A }}\n");
    }
    let fields: Vec<String> =
        names.iter().enumerate().map(|(i, text)| format!("{text} a{i};")).collect();
    for (name, kind, key) in
        [("p1", "", ""), ("s1", "@span", "@key"), ("c1", "@chain(one, two)", "@key")]
    {
        text += &format!("frame {name} {kind} {{ u64 of {key}; time t; {} }}\n", fields.join(" "));
    }
    text
}

/// Whether a file of one declaration is refused, and by a diagnostic.
fn refused(source: &str, language: Language) -> bool {
    let said = match ppt_codegen::parse(source.as_bytes(), "a.frame") {
        Err(failure) => failure.to_string(),
        Ok(frames) => match ppt_codegen::generate(&frames, "a.frame", &[language]) {
            Ok(_) => return false,
            Err(GenerateError::Names(failure)) => failure.to_string(),
            Err(other) => panic!("{source}: {other}"),
        },
    };
    assert!(said.contains('^') && said.contains("help: "), "{said}");
    true
}

/// The outputs of many frame files, which are compiled together.
struct Outputs {
    language: Language,
    folder: tempfile::TempDir,
    stems: Vec<String>,
}

impl Outputs {
    /// Adds that of a frame file, in a package of its own. The file's stem is the buffer's name if it has no other.
    fn add(&mut self, source: &str) {
        let stem = format!("x{}", self.stems.len());
        let name = format!("{stem}.frame");
        let frames = ppt_codegen::parse(source.as_bytes(), &name).unwrap();
        let outputs = ppt_codegen::generate(&frames, &name, &[self.language]).unwrap();
        ppt_codegen::write_outputs(&self.folder.path().join(&stem), &outputs).unwrap();
        self.stems.push(stem);
    }

    fn files(&self, end: &str) -> Vec<String> {
        self.stems.iter().map(|stem| format!("{stem}/{stem}{end}")).collect()
    }

    fn compile(&self) {
        let gcc = Compiler::gcc();
        let folder = self.folder.path();
        let has_cpp = Compiler::all().contains(&gcc);
        let syntax = |dialect, end| {
            if dialect == Dialect::Cpp17 && !has_cpp {
                return;
            }
            let files = self.files(end);
            let files = files.iter().map(String::as_str);
            gcc.run(dialect, folder, &SYNTAX.iter().copied().chain(files).collect::<Vec<_>>());
        };
        match self.language {
            Language::C => {
                syntax(Dialect::C11, ".c");
                syntax(Dialect::Cpp17, ".c");
            }
            Language::Cpp => syntax(Dialect::Cpp17, ".cpp"),
            Language::Python => {
                let Some(python) = Python::find() else { return };
                python.modules(folder, &self.files("_python.c"));
            }
            Language::Java => {
                let Some(jdk) = Jdk::find() else { return };
                jdk.libraries(gcc, folder, SYNTAX, &self.files("_jni.c"));
                jdk.classes(folder);
            }
            Language::Node => {
                let Some(node) = Node::find() else { return };
                node.addons(gcc, folder, SYNTAX, &self.stems);
                node.modules(folder, &self.stems);
            }
            Language::Go => {
                let Some(go) = Go::find() else { return };
                for stem in &self.stems {
                    go.header(gcc, &folder.join(stem));
                }
                go.vet(folder);
            }
            Language::Rust => unreachable!("the tests of targets compile that"),
        }
    }
}

/// Compiles what is generated for each list of words.
fn check_names(language: Language, lists: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut outputs = Outputs { language, folder, stems: Vec::new() };
    for words in lists {
        add_names(&mut outputs, words);
    }
    outputs.compile();
}

fn add_names(outputs: &mut Outputs, words: &str) {
    let language = outputs.language;
    let all: Vec<&str> = words.split_whitespace().collect();
    let allowed = |form: &dyn Fn(&str) -> String| -> Vec<&str> {
        all.iter().copied().filter(|name| !refused(&form(name), language)).collect()
    };
    let mut buffers = allowed(&|name| format!("buffer {name}; frame x {{ int y; }}"));
    let types =
        allowed(&|name| format!("{CLOCKS} frame {name} {{ time x; time y @clock(monotonic); }}"));
    let members = allowed(&|name| format!("enum E {{ {name} }} frame x {{ int {name}; E e; }}"));
    let span_types =
        allowed(&|name| format!("{CLOCKS} frame {name} @span {{ u64 of @key; time x; }}"));
    let span_members = allowed(&|name| format!("frame x @span {{ int {name} @key; }}"));
    assert!(buffers.len() * 2 > all.len(), "{buffers:?}");
    assert!(types.len() * 2 > all.len(), "{types:?}");
    assert!(members.len() * 2 > all.len(), "{members:?}");
    assert!(span_types.len() * 2 > all.len(), "{span_types:?}");
    assert!(span_members.len() * 2 > all.len(), "{span_members:?}");
    outputs.add(&spans(&span_types, &span_members));
    let chain_types = allowed(&|name| {
        format!("{CLOCKS} frame {name} @chain(of, off) {{ u64 of @key; time x; }}")
    });
    let chain_members = allowed(&|name| format!("frame x @chain(of, off) {{ int {name} @key; }}"));
    let steps = allowed(&|name| format!("frame x @chain({name}, other) {{ int of @key; }}"));
    assert!(chain_types.len() * 2 > all.len(), "{chain_types:?}");
    assert!(chain_members.len() * 2 > all.len(), "{chain_members:?}");
    outputs.add(&chains(&chain_types, &chain_members, &steps));
    let point_types =
        allowed(&|name| format!("{CLOCKS} frame {name} @point {{ hash of @in(of); time x; }}"));
    let point_members = allowed(&|name| format!("frame x @point {{ hash {name} @raw @in(of); }}"));
    assert!(point_types.len() * 2 > all.len(), "{point_types:?}");
    assert!(point_members.len() * 2 > all.len(), "{point_members:?}");
    outputs.add(&points(&point_types, &point_members));
    let enum_names = allowed(&|name| {
        format!("{CLOCKS} enum {name} {{ A }} frame x @span {{ u64 of @key; {name} y; time t; }}")
    });
    assert!(enum_names.len() * 2 > all.len(), "{enum_names:?}");
    outputs.add(&enums(&enum_names));
    buffers.retain(|name| BUFFERS.split_whitespace().any(|word| word == *name));
    if matches!(language, Language::Java | Language::Node | Language::Go) {
        // Their names do not have the buffer's in the middle, and what checks them takes seconds.
        buffers.truncate(1);
    }
    outputs.add(&frames("", &types, &members));
    for buffer in buffers {
        outputs.add(&frames(&format!("buffer {buffer};"), &types, &members));
    }
}

#[test]
fn c() {
    check_names(Language::C, &[OURS, MORE]);
}

#[test]
fn cpp() {
    check_names(Language::Cpp, &[OURS, MORE]);
}

#[test]
fn python() {
    check_names(Language::Python, &[OURS, MORE]);
}

#[test]
fn java() {
    check_names(Language::Java, &[OURS, &[MORE, JAVAS].join(" ")]);
}

#[test]
fn node() {
    check_names(Language::Node, &[OURS, &[MORE, NODES].join(" ")]);
}

#[test]
fn go() {
    check_names(Language::Go, &[OURS, &[MORE, GOS].join(" ")]);
}
