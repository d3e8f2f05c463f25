//! The installed library for C, and programs that are compiled with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::toolchain::tool;

/// A directory into which `make install-library` has put it.
#[derive(Debug)]
pub struct Installed {
    prefix: PathBuf,
}

/// What a program is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// With the shared library.
    Shared,
    /// With the static library.
    Static,
    /// With the shared library, under gcc's address sanitizer.
    Address,
    /// With the shared library, under gcc's thread sanitizer.
    Thread,
    /// With the shared library, to be run by valgrind.
    Valgrind,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Shared, Self::Static, Self::Address, Self::Thread, Self::Valgrind];

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Shared | Self::Static | Self::Valgrind => &["-O2"],
            Self::Address => &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"],
            Self::Thread => &["-O1", "-fsanitize=thread"],
        }
    }
}

/// Warnings of a C compiler are errors here.
const STRICT: &[&str] = &["-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-pedantic"];

/// The installation, made once.
///
/// # Panics
///
/// If it cannot be made.
pub fn installed() -> &'static Installed {
    static INSTALLED: LazyLock<Installed> = LazyLock::new(|| {
        let prefix = crate::target().join("tmp").join("capi");
        let mut make = Command::new("make");
        make.arg("-C").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        make.arg("install-library").arg(format!("PREFIX={}", prefix.display())).arg("DESTDIR=");
        make.arg(format!("PROFILE={}", crate::profile().0));
        make.env("CARGO_TARGET_DIR", crate::target()).env("CARGO", env!("CARGO"));
        // Variables of the make that runs the tests, if one does.
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        tool("make", "make", &mut make);
        Installed { prefix }
    });
    &INSTALLED
}

/// Whether programs can be run at the same addresses each time. gcc's sanitizers need that, on
/// kernels that choose addresses from a wider range (`vm.mmap_rnd_bits`) than there was when the
/// sanitizers were written.
fn can_fix_addresses() -> bool {
    Command::new("setarch").args(["-R", "true"]).status().is_ok_and(|status| status.success())
}

impl Installed {
    /// Where a shared library is: `manycore` or `timestone`.
    pub fn library(&self, name: &str) -> PathBuf {
        self.prefix.join(format!("lib/lib{name}.so.0"))
    }

    /// Where the headers are.
    pub fn headers(&self) -> PathBuf {
        self.prefix.join("include/manycore")
    }

    /// Compiles a C or C++ program, of this language standard.
    ///
    /// # Panics
    ///
    /// If the compiler finds fault with it.
    pub fn compile(&self, source: &Path, standard: &str, variant: Variant) -> PathBuf {
        let is_cpp = source.extension().is_some_and(|extension| extension == "cc");
        let (compiler, package) = if is_cpp { ("g++", "g++") } else { ("gcc", "gcc") };
        let name = source.file_stem().expect("a source has a name").to_string_lossy();
        let product = self.prefix.join(format!("{name}-{standard}-{variant:?}"));
        let mut command = Command::new(compiler);
        command.arg(source).arg("-o").arg(&product).arg(format!("-std={standard}"));
        command.args(STRICT).args(variant.flags()).args(["-D_POSIX_C_SOURCE=200809L"]);
        let is_static = variant == Variant::Static;
        for flag in self.pkg_config(source, is_static).split_whitespace() {
            match flag {
                "-lmanycore" | "-ltimestone" if is_static => {
                    command.arg(format!("-l:lib{}.a", &flag[2..]))
                }
                flag => command.arg(flag),
            };
        }
        tool(compiler, package, &mut command);
        product
    }

    /// Compiles a program with pkg-config's flags and these flags only, as in the book. The program
    /// runs without further settings.
    ///
    /// # Panics
    ///
    /// If the compiler or the linker finds fault with it.
    pub fn compile_as_told(&self, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
        let product = self.prefix.join(name);
        let mut command = Command::new("gcc");
        command.arg(source).arg("-o").arg(&product).args(["-O2", "-pthread"]).args(flags);
        command.arg("-D_POSIX_C_SOURCE=200809L");
        command.args(self.pkg_config(source, flags.contains(&"-static")).split_whitespace());
        let libraries = self.prefix.join("lib");
        if !flags.contains(&"-static") {
            command.arg(format!("-Wl,-rpath,{}", libraries.display()));
        }
        tool("gcc", "gcc", &mut command);
        product
    }

    /// The flags for a program: those of TimeStone if the program includes TimeStone's header.
    fn pkg_config(&self, source: &Path, is_static: bool) -> String {
        let text = std::fs::read_to_string(source).expect("the program");
        let mut command = Command::new("pkg-config");
        command.args(["--cflags", "--libs"]).args(is_static.then_some("--static"));
        command.arg("manycore-rlu").args(text.contains("/timestone.h").then_some("timestone"));
        command.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig"));
        tool("pkg-config", "pkg-config", &mut command)
    }

    /// The command that runs a compiled program. It fails if the checker of this variant finds a
    /// fault.
    pub fn run(&self, program: &Path, variant: Variant) -> Command {
        let mut command = match variant {
            Variant::Valgrind => {
                let mut valgrind = Command::new("valgrind");
                tool("valgrind", "valgrind", Command::new("valgrind").arg("--version"));
                // Threads need fair scheduling there, because some wait for others by polling.
                valgrind.args([
                    "-q",
                    "--error-exitcode=99",
                    "--leak-check=full",
                    "--fair-sched=yes",
                ]);
                valgrind.arg(program);
                valgrind
            }
            Variant::Address | Variant::Thread if can_fix_addresses() => {
                let mut command = Command::new("setarch");
                command.arg("-R").arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.env("LD_LIBRARY_PATH", self.prefix.join("lib"));
        let suppressions = self.prefix.join("share/manycore/tsan.supp");
        command.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
        command
    }
}
