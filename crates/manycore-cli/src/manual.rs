//! `manycore man` and `manycore completions`: what packagers install beside the command.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;

/// Write the manual pages
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  manycore man | man -l -
  manycore man --out ~/.local/share/man/man1
")]
pub struct ManOptions {
    /// Directory for a page per command; without it, manycore(1) goes to stdout
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Write a completion script for a shell
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  manycore completions bash > ~/.local/share/bash-completion/completions/manycore
  manycore completions fish > ~/.config/fish/completions/manycore.fish
")]
pub struct CompletionOptions {
    /// Which shell
    shell: Shell,
}

/// Writes the script to stdout.
pub fn completions(options: &CompletionOptions, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "manycore", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one page to stdout, or all of them to a directory.
pub fn pages(options: &ManOptions, command: Command) -> Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(directory) = &options.out else {
        let mut text = Vec::new();
        page(&command, &mut text).expect("memory takes all that is written to it");
        return print(&String::from_utf8_lossy(&text));
    };
    write_all(&command, directory).map_err(|error| {
        Failure::bad_input(
            format!("cannot write manual pages to '{}': {error}", directory.display()),
            "name a directory that you may write to",
        )
    })
}

fn write_all(command: &Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_all(command, directory)?;
    }
    let name = Man::new(command.clone()).get_filename();
    page(command, &mut File::create(directory.join(name))?)
}

/// One page. The help's notes become its sections: EXAMPLES, EXIT STATUS and so on.
fn page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone()).manual("manycore");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    let notes = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::default();
    for line in notes.lines() {
        match line.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                roff.control("fi", [])
                    .control("SH", [heading.to_uppercase().as_str()])
                    .control("nf", []);
            }
            _ => {
                roff.text([roman(line)]);
            }
        }
    }
    roff.control("fi", []).to_writer(out)
}
