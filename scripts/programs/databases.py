"""Databases."""
from pathlib import Path

from .trial import command, program


@program("mariadbd", "mariadb-server mariadb-client", "databases")
def mariadb(trial):
    data, sock = trial.place / "data", trial.place / "s"
    trial.tool("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
               "--skip-test-db", "--basedir=/usr")
    server = trial.serve("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={sock}", "--skip-networking",
                         f"--pid-file={trial.place}/pid", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
                         "--plugin-dir=/usr/lib/mysql/plugin", ready=sock)
    client = ("mariadb", "--no-defaults", f"--socket={sock}", "-u", "root")
    trial.tool(*client, "-e", "create database d; "
               "create table d.t (a int primary key auto_increment, b int) engine=innodb; "
               "insert into d.t (b) values (7)")
    trial.tool("mariadb-slap", "--no-defaults", f"--socket={sock}", "-u", "root", "--create-schema=d", "--no-drop",
               "--concurrency=8", "--number-of-queries=2000", "--delimiter=;",
               "--query=insert into d.t (b) values (7); update d.t set b = b + 1 where a = 1; "
               "select * from d.t where a = 1")
    got = trial.tool(*client, "-e", "select count(*), sum(b), max(b) from d.t; check table d.t")
    return got + trial.stop(server)


def postgres_with_accounts(trial, under):
    """A server with pgbench's tables: its programs' directory, the server, and how to reach it."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))
    data, where = trial.place / "data", ("-h", trial.place, "-U", "p")
    trial.tool(programs / "initdb", "-D", data, "-U", "p", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
    server = trial.serve(programs / "postgres", "-D", data, "-k", trial.place, "-h", "", "-c", "fsync=off", under=under,
                         ready=lambda server: "ready to accept" in server.told())
    trial.tool(programs / "pgbench", *where, "-i", "-s", 1, "-q", "postgres")
    return programs, server, where


@program("postgres", "postgresql", "databases")
def postgres(trial):
    programs, server, where = postgres_with_accounts(trial, under=True)
    trial.tool(programs / "pgbench", *where, "-c", 8, "-j", 2, "-t", 100, "postgres")
    got = trial.tool(programs / "psql", *where, "-At", "-c", "select count(*) from pgbench_history", "-c",
                     "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)",
                     "postgres")
    return got + trial.stop(server)


@program("pgbench", "postgresql", "databases")
def pgbench(trial):
    programs, _, where = postgres_with_accounts(trial, under=False)
    said = trial.program(programs / "pgbench", *where, "-c", 8, "-j", 4, "-t", 50, "postgres")
    return "\n".join(line for line in said.splitlines() if "transactions" in line and "/" in line)


SQL = """create table t (a integer primary key, b text); with recursive n(x) as (select 1 union all select x + 1 from n
where x < 200000) insert into t select x, hex(x * 7919 % 10007) from n; create index i on t (b); pragma threads = 4;
select count(distinct b), sum(length(b)) from t; select b, count(*) from t group by b order by 2, 1 limit 5;"""
command("sqlite3", "sqlite3", "databases", "sqlite3", "file", SQL)


@program("kccachetest", "kyotocabinet-utils", "databases")
def kyoto(trial):
    said = trial.program("kccachetest", "order", "-th", 8, "-rnd", 20000)
    assert said.count("ok") >= 1, said
    return "\n".join(line for line in said.splitlines() if line == "ok")


@program("sysbench", "sysbench", "databases")
def sysbench(trial):
    said = trial.program("sysbench", "mutex", "--threads=8", "--mutex-num=16", "--mutex-locks=5000", "run")
    said += trial.program("sysbench", "threads", "--threads=8", "--events=1000", "--time=0", "run")
    return "\n".join(line for line in said.splitlines() if "total number of events" in line)
