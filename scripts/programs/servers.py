"""Servers, each under the load of a client that is not tried."""
import signal
import socket
import time

from .trial import command, program

WORDS = "".join(f"line {n} of a page that is served\n" for n in range(1200))


def site(trial):
    trial.file("site/index.html", WORDS)
    return trial.place / "site"


def pages(trial, url, times, *options, under=False):
    """Loads a page by curl from several connections at a time, each into a file; all have to be one."""
    run = trial.program if under else trial.tool
    run("curl", "-sS", "-Z", "--parallel-max", 8, *options, "-o", "page#1", f"{url}?[1-{times}]")
    return f"{times} times {' and '.join({trial.digest(f'page{n}') for n in range(1, times + 1)})}"


def dig(trial, port, *queries):
    """Answers to queries, each asked from a file that has it many times."""
    lines = "".join(f"{query}\n" for query in queries for _ in range(100))
    said = trial.tool("dig", "@127.0.0.1", "-p", port, "+short", "+tries=3", "-f", trial.file("queries", lines))
    return said


@program("redis-server", "redis-server redis-tools", "servers")
def redis(trial):
    port = trial.port()
    server = trial.serve("redis-server", "--port", port, "--save", "", "--io-threads", 2, "--appendonly", "yes",
                         "--dir", trial.directory("data"), ready=port)
    load = trial.tool("redis-benchmark", "-p", port, "-q", "-n", 2000, "-c", 20, "-t", "set,get,lpush,zadd")
    assert load.count("requests per second") >= 4, load
    ask = lambda *words: trial.tool("redis-cli", "-p", port, *words)
    rewritten = ask("BGREWRITEAOF")
    got = ask("LLEN", "mylist") + ask("DBSIZE") + ask("GET", "key:__rand_int__") + rewritten
    return got + trial.stop(server)


@program("redis-benchmark", "redis-server redis-tools", "servers")
def redis_benchmark(trial):
    port = trial.port()
    server = trial.serve("redis-server", "--port", port, "--save", "", ready=port, under=False)
    trial.program("redis-benchmark", "-p", port, "-q", "-n", 4000, "-c", 20, "--threads", 2, "-t", "lpush")
    return trial.tool("redis-cli", "-p", port, "LLEN", "mylist") + trial.stop(server)


@program("memcached", "memcached libmemcached-tools", "servers")
def memcached(trial):
    port = trial.port()
    server = trial.serve("memcached", "-l", "127.0.0.1", "-p", port, "-U", 0, "-t", 4, ready=port)
    trial.tool("memcslap", f"--servers=127.0.0.1:{port}", "--concurrency=8", "--execute-number=200", "--test=set")
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"set a 0 0 5\r\nvalue\r\nget a\r\nincr a 1\r\ndelete a\r\nget a\r\nquit\r\n")
        said = b"".join(iter(lambda: client.recv(4096), b""))
    return said.decode() + trial.stop(server)


@program("nginx", "nginx-light apache2-utils", "servers")
def nginx(trial):
    port, here = trial.port(), trial.place
    temporary = "".join(f"{kind}_temp_path {here}/t{kind};\n" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = trial.file("nginx.conf", f"daemon off;\nworker_processes 2;\npid {here}/pid;\nerror_log {here}/errors;\n"
                      "thread_pool default threads=4;\nevents { worker_connections 256; }\nhttp {\naccess_log off;\n"
                      f"aio threads;\n{temporary}server {{ listen 127.0.0.1:{port}; root {site(trial)}; }}\n}}\n")
    server = trial.serve("nginx", "-p", here, "-c", conf, "-e", here / "errors", ready=port)
    url = f"http://127.0.0.1:{port}/index.html"
    return trial.fetch(url) + trial.bench(url) + trial.stop(server)


@program("apache2", "apache2-bin apache2-utils", "servers")
def apache(trial):
    port, modules = trial.port(), "/usr/lib/apache2/modules"
    loads = "".join(f"LoadModule {name}_module {modules}/mod_{name}.so\n" for name in ("mpm_event", "authz_core"))
    conf = trial.file("httpd.conf", f"ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {trial.place}/pid\n"
                      f"ErrorLog {trial.place}/errors\nDefaultRuntimeDir {trial.place}\n{loads}"
                      f"DocumentRoot {site(trial)}\n")
    server = trial.serve("apache2", "-DFOREGROUND", "-f", conf, ready=port)
    url = f"http://127.0.0.1:{port}/index.html"
    return trial.fetch(url) + trial.bench(url) + trial.stop(server)


@program("ab", "apache2-utils lighttpd", "servers")
def ab(trial):
    port = trial.port()
    conf = lighttpd_conf(trial, port)
    server = trial.serve("lighttpd", "-D", "-f", conf, ready=port, under=False)
    said = trial.program("ab", "-q", "-n", 2000, "-c", 24, f"http://127.0.0.1:{port}/index.html")
    return "\n".join(line for line in said.splitlines() if "requests:" in line) + trial.stop(server)


def lighttpd_conf(trial, port):
    return trial.file("lighttpd.conf", f'server.document-root = "{site(trial)}"\nserver.port = {port}\n'
                      'server.bind = "127.0.0.1"\nmimetype.assign = (".html" => "text/html")\n')


@program("lighttpd", "lighttpd apache2-utils", "servers")
def lighttpd(trial):
    port = trial.port()
    server = trial.serve("lighttpd", "-D", "-f", lighttpd_conf(trial, port), ready=port)
    url = f"http://127.0.0.1:{port}/index.html"
    # Graceful: otherwise its status tells whether it has noticed yet that the last client is gone.
    return trial.fetch(url) + trial.bench(url) + trial.stop(server, signal.SIGINT)


def behind(trial):
    """A web server for those that stand before one."""
    port = trial.port()
    trial.serve("lighttpd", "-D", "-f", lighttpd_conf(trial, port), ready=port, under=False)
    return port


@program("haproxy", "haproxy lighttpd apache2-utils", "servers")
def haproxy(trial):
    port, back = trial.port(), behind(trial)
    conf = trial.file("haproxy.cfg", "global\n nbthread 4\n maxconn 400\ndefaults\n mode http\n timeout connect 20s\n"
                      f" timeout client 60s\n timeout server 60s\nfrontend f\n bind 127.0.0.1:{port}\n"
                      f" default_backend b\nbackend b\n server s 127.0.0.1:{back}\n")
    server = trial.serve("haproxy", "-db", "-f", conf, ready=port)
    url = f"http://127.0.0.1:{port}/index.html"
    return trial.fetch(url) + trial.bench(url) + trial.stop(server)


@program("varnishd", "varnish lighttpd apache2-utils gcc", "servers")
def varnish(trial):
    port, back = trial.port(), behind(trial)
    server = trial.serve("varnishd", "-F", "-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{back}", "-T", "none",
                         "-j", "none", "-n", trial.directory("v"), "-s", "malloc,64m", ready=port)
    url = f"http://127.0.0.1:{port}/index.html"
    return trial.fetch(url) + trial.bench(url) + trial.stop(server)


@program("squid", "squid lighttpd", "servers")
def squid(trial):
    port, back = trial.port(), behind(trial)
    conf = trial.file("squid.conf", f"http_port 127.0.0.1:{port}\nhttp_access allow all\n"
                      f"pid_filename {trial.place}/pid\n"
                      f"access_log none\ncache_log {trial.place}/log\ncache_mem 16 MB\nshutdown_lifetime 1 seconds\n"
                      f"cache_dir aufs {trial.directory('cache')} 64 16 16\nmime_table /usr/share/squid/mime.conf\n"
                      f"coredump_dir {trial.place}\npinger_enable off\nforward_timeout 30 seconds\n"
                      "visible_hostname localhost\nnetdb_filename none\n")
    trial.tool("squid", "--foreground", "-z", "-f", conf)
    server = trial.serve("squid", "--foreground", "-f", conf, ready=port)
    got = pages(trial, f"http://127.0.0.1:{back}/index.html", 200, "-x", f"http://127.0.0.1:{port}")
    return got + trial.stop(server)


@program("named", "bind9 bind9-dnsutils", "servers")
def named(trial):
    port = trial.port()
    zone = trial.file("zone", "$TTL 60\n@ IN SOA ns root 1 60 60 60 60\n@ IN NS ns\nns IN A 127.0.0.1\n"
                      + "".join(f"h{n} IN A 10.1.{n // 250}.{n % 250}\n" for n in range(1000)))
    conf = trial.file("named.conf", f'options {{ directory "{trial.place}"; listen-on port {port} {{ 127.0.0.1; }};\n'
                      f'listen-on-v6 {{ none; }}; pid-file "{trial.place}/pid"; session-keyfile "{trial.place}/key";\n'
                      'recursion no; dnssec-validation no; };\ncontrols { };\n'
                      f'zone "example" {{ type primary; file "{zone}"; }};\n')
    server = trial.serve("named", "-g", "-n", 4, "-c", conf, ready=lambda server: "all zones loaded" in server.told())
    return dig(trial, port, "h1.example", "h999.example", "+tcp h5.example", "example NS") + trial.stop(server)


@program("dig", "bind9 bind9-dnsutils unbound", "servers")
def digging(trial):
    port = trial.port()
    trial.serve("unbound", "-d", "-c", unbound_conf(trial, port), ready=port, under=False)
    lines = "".join(f"h{n}.example\n" for n in range(1, 90))
    return trial.program("dig", "@127.0.0.1", "-p", port, "+short", "-f", trial.file("queries", lines))


def unbound_conf(trial, port):
    data = "".join(f'local-data: "h{n}.example. A 10.2.0.{n}"\n' for n in range(1, 200))
    return trial.file("unbound.conf", f'server:\nnum-threads: 4\ninterface: 127.0.0.1\nport: {port}\nusername: ""\n'
                      f'chroot: ""\ndirectory: "{trial.place}"\npidfile: "{trial.place}/upid"\nuse-syslog: no\n'
                      f'do-daemonize: no\nlocal-zone: "example." static\n{data}')


@program("unbound", "unbound bind9-dnsutils", "servers")
def unbound(trial):
    port = trial.port()
    server = trial.serve("unbound", "-d", "-c", unbound_conf(trial, port), ready=port)
    return dig(trial, port, "h1.example", "h150.example", "+tcp h7.example") + trial.stop(server)


@program("dnsmasq", "dnsmasq-base bind9-dnsutils", "servers")
def dnsmasq(trial):
    port = trial.port()
    server = trial.serve("dnsmasq", "-k", "-p", port, "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv",
                         "--no-hosts", "--conf-file=/dev/null", "--pid-file", "--user=", "--group=",
                         "--address=/one.example/10.0.0.1", "--address=/two.example/10.0.0.2", ready=port)
    return dig(trial, port, "one.example", "a.two.example", "+tcp one.example") + trial.stop(server)


@program("mosquitto", "mosquitto mosquitto-clients", "servers")
def mosquitto(trial):
    port = trial.port()
    conf = trial.file("mosquitto.conf", f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    server = trial.serve("mosquitto", "-c", conf, ready=port)
    hears = trial.serve("mosquitto_sub", "-h", "127.0.0.1", "-p", port, "-t", "news", "-q", 1, "-C", 1000,
                        ready=lambda _: time.sleep(0.5) or True, under=False)
    news = trial.file("news", "".join(f"news {n}\n" for n in range(1000)))
    trial.tool("mosquitto_pub", "-h", "127.0.0.1", "-p", port, "-t", "news", "-q", 1, "-l", stdin=news)
    return trial.end_of(hears) + trial.stop(server)


@program("mosquitto_pub", "mosquitto mosquitto-clients", "servers")
def mosquitto_pub(trial):
    port = trial.port()
    conf = trial.file("mosquitto.conf", f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    trial.serve("mosquitto", "-c", conf, ready=port, under=False)
    trial.program("mosquitto_pub", "-h", "127.0.0.1", "-p", port, "-t", "news", "-r", "-m", "kept")
    return trial.program("mosquitto_sub", "-h", "127.0.0.1", "-p", port, "-t", "news", "-C", 1)


# Setuid root: refused, with the line that says so.
command("exim4", "exim4-daemon-light", "servers", "exim4", "-bV")


@program("smbd", "samba smbclient", "servers")
def smbd(trial):
    port = trial.port()
    places = "".join(f" {what} directory = {trial.directory(what)}\n" 
                     for what in ("state", "cache", "lock", "private", "pid"))
    conf = trial.file("smb.conf", f"[global]\n interfaces = 127.0.0.1\n bind interfaces only = yes\n"
                      f" smb ports = {port}\n"
                      f" ncalrpc dir = {trial.directory('n')}\n{places} server role = standalone\n"
                      f" guest account = {trial.user}\n"
                      f" map to guest = Bad User\n log file = {trial.place}/log\n disable spoolss = yes\n"
                      " load printers = no\n"
                      f"[share]\n path = {trial.directory('share')}\n guest ok = yes\n read only = no\n"
                      " aio read size = 1\n aio write size = 1\n")
    server = trial.serve("smbd", "--foreground", "--no-process-group", "-s", conf, ready=port)
    trial.file("up", WORDS)
    said = trial.tool("smbclient", "//127.0.0.1/share", "-N", "-p", port, "-s", trial.file("client.conf"),
                      "-c", "put up there; get there down; rm there; ls")
    stable = "\n".join(line for line in said.splitlines() if "there" in line and "file" not in line)
    return stable + trial.digest("up", "down") + trial.stop(server)


@program("slapd", "slapd ldap-utils", "servers")
def slapd(trial):
    port = trial.port()
    conf = trial.file("slapd.conf", "include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\n"
                      "moduleload back_mdb\nthreads 8\ndatabase mdb\nsuffix dc=example\n"
                      "rootdn cn=admin,dc=example\nrootpw secret\n"
                      f"directory {trial.directory('data')}\npidfile {trial.place}/pid\n")
    server = trial.serve("slapd", "-d", 0, "-f", conf, "-h", f"ldap://127.0.0.1:{port}", ready=port)
    entries = "dn: dc=example\nobjectClass: organization\nobjectClass: dcObject\no: example\ndc: example\n\n" + "".join(
        f"dn: cn=p{n},dc=example\nobjectClass: person\ncn: p{n}\nsn: s{n}\n\n" for n in range(300))
    uri = f"ldap://127.0.0.1:{port}"
    trial.tool("ldapadd", "-x", "-H", uri, "-D", "cn=admin,dc=example", "-w", "secret",
               "-f", trial.file("ldif", entries))
    found = trial.tool("ldapsearch", "-x", "-H", uri, "-b", "dc=example", "-LLL", "(sn=s1*)", "cn")
    return "\n".join(sorted(found.splitlines())) + trial.stop(server)


@program("stunnel", "stunnel4 openssl lighttpd apache2-utils", "servers")
def stunnel(trial):
    port, back = trial.port(), behind(trial)
    trial.tool("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert",
               "-subj", "/CN=localhost", "-days", 2)
    conf = trial.file("stunnel.conf", f"foreground = yes\npid = {trial.place}/pid\n[web]\naccept = 127.0.0.1:{port}\n"
                      f"connect = 127.0.0.1:{back}\ncert = {trial.place}/cert\nkey = {trial.place}/key\n")
    server = trial.serve("stunnel4", conf, ready=port)
    url = f"https://127.0.0.1:{port}/index.html"
    return pages(trial, url, 60, "-k") + trial.bench(url, requests=500) + trial.stop(server)


@program("sftp", "openssh-client openssh-sftp-server", "servers")
def sftp(trial):
    trial.file("up", WORDS)
    batch = trial.file("batch", f"put {trial.place}/up {trial.place}/there\n"
                       f"get {trial.place}/there {trial.place}/down\n")
    trial.program("sftp", "-q", "-b", batch, "-D", "/usr/lib/openssh/sftp-server")
    return trial.digest("up", "down")


@program("iperf3", "iperf3", "servers")
def iperf3(trial):
    port = trial.port()
    server = trial.serve("iperf3", "-s", "-B", "127.0.0.1", "-p", port, ready=port, statuses=(0, 1))
    trial.program("iperf3", "-c", "127.0.0.1", "-p", port, "-n", "60M", "-P", 4)
    return trial.stop(server)


@program("etcd", "etcd-server", "servers")
def etcd(trial):
    port, peer = trial.port(), trial.port()
    server = trial.serve("etcd", "--data-dir", trial.directory("d"), "--listen-client-urls", f"http://127.0.0.1:{port}",
                         "--advertise-client-urls", f"http://127.0.0.1:{port}", "--listen-peer-urls",
                         f"http://127.0.0.1:{peer}", "--unsafe-no-fsync", ready=port)
    return trial.fetch(f"http://127.0.0.1:{port}/health", 50) + trial.stop(server)


@program("wrk", "wrk lighttpd", "servers")
def wrk(trial):
    said = trial.program("wrk", "-t", 4, "-c", 16, "-d", "1s", f"http://127.0.0.1:{behind(trial)}/index.html")
    return "answers" if "Requests/sec" in said and "errors" not in said and "Non-2xx" not in said else said
