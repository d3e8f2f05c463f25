//! Compiling the programs under test with the system's compilers.
//!
//! A program is compiled again when its source or a header is newer, or when the options have
//! changed. A missing tool fails the test, with the command that installs the tool: a case that
//! does not run proves nothing.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A program that can be started.
#[derive(Clone, Debug)]
pub struct Executable {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Executable {
    /// The command that starts it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The file that is executed.
    pub fn path(&self) -> &Path {
        &self.program
    }
}

impl From<PathBuf> for Executable {
    fn from(program: PathBuf) -> Self {
        Self { program, arguments: Vec::new() }
    }
}

/// A directory of sources, and one for the files built from them.
#[derive(Clone, Debug)]
pub struct Workshop {
    sources: PathBuf,
    products: PathBuf,
}

const C: &[&str] = &["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-pthread"];
const CPP: &[&str] = &["-std=gnu++17", "-O2", "-g", "-Wall", "-Wextra", "-pthread"];
const SHARED: &[&str] = &["-shared", "-fPIC"];

impl Workshop {
    /// The programs of this crate.
    ///
    /// # Panics
    ///
    /// If the directory for the products cannot be made.
    pub fn new() -> Self {
        Self::of("programs")
    }

    /// The programs in a directory of this crate.
    ///
    /// # Panics
    ///
    /// If the directory for the products cannot be made.
    pub fn of(directory: &str) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        let products = crate::target().join("tmp").join(directory);
        fs::create_dir_all(&products).expect("a directory for compiled programs");
        Self { sources, products }
    }

    /// Compiles `NAME.c`.
    pub fn c(&self, name: &str, flags: &[&str]) -> Executable {
        self.c_as(name, name, flags)
    }

    /// Compiles `NAME.c` into a program called `product`, with other options than [`c`](Self::c).
    pub fn c_as(&self, name: &str, product: &str, flags: &[&str]) -> Executable {
        self.compile("cc", "gcc", &format!("{name}.c"), product, &[C, flags].concat()).into()
    }

    /// Compiles `NAME.cc`.
    pub fn cpp(&self, name: &str) -> Executable {
        self.compile("g++", "g++", &format!("{name}.cc"), name, CPP).into()
    }

    /// Compiles `NAME.c` with GLib.
    pub fn c_with_glib(&self, name: &str) -> Executable {
        let flags = pkg_config("glib-2.0", "libglib2.0-dev");
        self.c(name, &flags.split_whitespace().collect::<Vec<_>>())
    }

    /// Compiles `NAME.c` into a shared library called `product`.
    pub fn shared_library(&self, name: &str, product: &str, flags: &[&str]) -> PathBuf {
        let flags = [C, SHARED, flags].concat();
        self.compile("cc", "gcc", &format!("{name}.c"), &format!("{product}.so"), &flags)
    }

    /// `NAME.py`, run by the interpreter itself. A script that starts the interpreter would be
    /// under test, too.
    pub fn python(&self, name: &str) -> Executable {
        let asked = ["-c", "import sys; print(sys.executable)"];
        let program = tool("python3", "python3", Command::new("python3").args(asked));
        let script = self.sources.join(format!("{name}.py"));
        Executable { program: program.trim_end().into(), arguments: vec![script.into()] }
    }

    /// The class `NAME`, compiled from `NAME.java`.
    pub fn java(&self, name: &str) -> Executable {
        let (classes, product) = (self.products.as_os_str(), format!("{name}.class"));
        if self.is_stale(&self.products.join(product), &format!("{name}.java")) {
            let source = self.sources.join(format!("{name}.java"));
            let compile = &mut Command::new("javac");
            tool("javac", "default-jdk-headless", compile.arg("-d").arg(classes).arg(source));
        }
        let arguments = vec!["-cp".into(), classes.to_owned(), name.into()];
        Executable { program: "java".into(), arguments }
    }

    /// Compiles a source into a product, and returns its path.
    fn compile(
        &self,
        tool_name: &str,
        package: &str,
        source: &str,
        product: &str,
        flags: &[&str],
    ) -> PathBuf {
        let product = self.products.join(product);
        let recipe_path = product.with_extension("recipe");
        let recipe = format!("{tool_name} {source} {}", flags.join(" "));
        let is_same = fs::read_to_string(&recipe_path).is_ok_and(|before| before == recipe);
        if !is_same || self.is_stale(&product, source) {
            // Another test binary may be running the old product. So the new product gets the final
            // name only when it is complete.
            let unfinished = product.with_extension(format!("{}.new", std::process::id()));
            let mut compile = Command::new(tool_name);
            // Libraries come after what needs them.
            compile.current_dir(&self.sources).arg(source).arg("-o").arg(&unfinished).args(flags);
            tool(tool_name, package, compile.arg("-ldl"));
            fs::rename(&unfinished, &product).expect("put a compiled program in its place");
            fs::write(&recipe_path, recipe).expect("note how a program was compiled");
        }
        product
    }

    /// Whether the product is missing, or older than its source or a header.
    fn is_stale(&self, product: &Path, source: &str) -> bool {
        let Some(made) = modified(product) else { return true };
        let above = self.sources.parent().expect("sources are below this crate");
        let headers = [&self.sources, above]
            .into_iter()
            .flat_map(|place| fs::read_dir(place).expect("the sources of this crate"))
            .map(|entry| entry.expect("a directory entry").path());
        headers
            .filter(|path| path.extension().is_some_and(|extension| extension == "h"))
            .chain([self.sources.join(source)])
            .any(|input| modified(&input).is_none_or(|changed| changed >= made))
    }
}

impl Default for Workshop {
    fn default() -> Self {
        Self::new()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn pkg_config(library: &str, package: &str) -> String {
    let mut ask = Command::new("pkg-config");
    let output = ask.args(["--cflags", "--libs", library]).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => panic!("{library} is not installed: apt-get install pkg-config {package}"),
    }
}

/// Runs a tool that has to succeed; what it printed.
pub(crate) fn tool(name: &str, package: &str, command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| match error.kind() {
        ErrorKind::NotFound => panic!("{name} is not installed: apt-get install {package}"),
        _ => panic!("cannot start {name}: {error}"),
    });
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} fails:\n{complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
