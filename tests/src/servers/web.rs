//! Servers of files: Apache prefork with mod_php, nginx, Python's `http.server` and `asyncio`,
//! Java's `HttpServer`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{GRACE, await_port, body, free_port};
use crate::soak::launch::Launch;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, ensure, installed, place};
use crate::toolchain::Workshop;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Apache 2.4 with a process for each connection, and a page of PHP.
    Apache,
    /// nginx with two workers.
    Nginx,
    /// `python3 -m http.server`.
    Python,
    /// A server on Python's asyncio, of our own.
    Asyncio,
    /// A server on `com.sun.net.httpserver`, of our own.
    Java,
}

/// A server that serves a site.
#[derive(Debug)]
pub struct Site {
    server: Process,
    port: u16,
    // Goes after the server.
    place: TempDir,
}

/// What the loop page of Apache answers.
pub const PAGE_SUM: &str = "499500";

impl Site {
    /// Starts one.
    pub fn start(kind: Kind, launch: Launch) -> Result<Self> {
        let place = place()?;
        body::write_site(place.path())?;
        let port = free_port()?;
        let mut command = match kind {
            Kind::Apache => apache(launch, place.path(), port)?,
            Kind::Nginx => nginx(launch, place.path(), port)?,
            Kind::Python => python(launch, place.path(), port)?,
            Kind::Asyncio => asyncio(launch, place.path(), port)?,
            Kind::Java => java(launch, place.path(), port)?,
        };
        let server = Process::start("server", &mut command, place.path())?;
        await_port(&server, port)?;
        Ok(Self { server, port, place })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its files, and room for others.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// Its first process.
    pub fn process(&self) -> &Process {
        &self.server
    }

    /// Ends the server by the signal for an orderly end.
    pub fn stop(self, kind: Kind) -> Result<()> {
        let Self { server, place: _place, .. } = self;
        let status = server.stop(GRACE)?;
        // Those of a language's own end by the signal.
        let ends_by_itself = matches!(kind, Kind::Apache | Kind::Nginx);
        ensure(!ends_by_itself || status.success(), || format!("the server ends with {status}"))
    }
}

fn written(place: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = place.join(name);
    fs::write(&path, text).map_err(Failure::because(format!("cannot write {name}")))?;
    Ok(path)
}

fn apache(launch: Launch, place: &Path, port: u16) -> Result<Command> {
    let server = installed("apache2", "apache2")?;
    let modules =
        server.ancestors().nth(2).unwrap_or(Path::new("/usr")).join("lib/apache2/modules");
    let entries = fs::read_dir(&modules).map_err(Failure::because("Apache's modules"))?;
    let php = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("libphp") && name.ends_with(".so"))
        .max()
        .ok_or_else(|| {
            Failure::new("mod_php is not installed: apt-get install libapache2-mod-php")
        })?;
    written(place, "loop.php", "<?php $x = 0; for ($i = 0; $i < 1000; $i++) $x += $i; echo $x;\n")?;
    let user = if geteuid().is_root() { "User nobody\nGroup nogroup\n" } else { "" };
    let (here, modules) = (place.display(), modules.display());
    let text = format!(
        "ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {here}/pid\nErrorLog {here}/errors\n\
         DefaultRuntimeDir {here}\nLoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\nLoadModule php_module {modules}/{php}\n\
         {user}KeepAlive Off\nStartServers 4\nMaxRequestWorkers 64\nDocumentRoot {here}\n\
         <Directory {here}>\nRequire all granted\n</Directory>\n\
         <FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n"
    );
    let file = written(place, "httpd.conf", &text)?;
    let mut command = launch.command(&server);
    command.arg("-DFOREGROUND").arg("-f").arg(file);
    Ok(command)
}

fn nginx(launch: Launch, place: &Path, port: u16) -> Result<Command> {
    let server = installed("nginx", "nginx-light")?;
    let user = if geteuid().is_root() { "user nobody nogroup;\n" } else { "" };
    let here = place.display();
    let text = format!(
        "{user}daemon off;\nworker_processes 2;\npid {here}/pid;\nerror_log {here}/errors;\n\
         events {{ worker_connections 256; }}\nhttp {{\naccess_log off;\nsendfile on;\n\
         client_body_temp_path {here}/t1;\nproxy_temp_path {here}/t2;\nfastcgi_temp_path {here}/t3;\n\
         uwsgi_temp_path {here}/t4;\nscgi_temp_path {here}/t5;\n\
         server {{ listen 127.0.0.1:{port}; root {here}; }}\n}}\n"
    );
    let file = written(place, "nginx.conf", &text)?;
    let mut command = launch.command(&server);
    command.arg("-p").arg(place).arg("-c").arg(file).arg("-e").arg(place.join("errors"));
    Ok(command)
}

fn python(launch: Launch, place: &Path, port: u16) -> Result<Command> {
    let mut command = launch.command(&installed("python3", "python3")?);
    command.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
    command.arg(place).arg(port.to_string());
    Ok(command)
}

fn asyncio(launch: Launch, place: &Path, port: u16) -> Result<Command> {
    let script = Workshop::of("programs/servers").python("asyncio_server");
    let mut command = launch.command(script.path());
    command.args(script.command().get_args()).arg(place).arg(port.to_string());
    Ok(command)
}

fn java(launch: Launch, place: &Path, port: u16) -> Result<Command> {
    let class = Workshop::of("programs/servers").java("FileServer");
    let mut command = launch.command(&installed("java", "default-jdk-headless")?);
    // A small heap is soon full, so that memory which grows later is not the heap's.
    command.args(["-Xms24m", "-Xmx24m", "-XX:+UseSerialGC"]);
    command.args(class.command().get_args()).arg(place).arg(port.to_string());
    Ok(command)
}
