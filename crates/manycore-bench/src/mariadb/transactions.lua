-- The transactions of "Locking in Practice: Performance of a Database System on a Multicore Machine" (H. Han), for
-- sysbench: three tables; one transaction reads 100 consecutive rows, the other updates 20 rows of the next table as well.

sysbench.cmdline.options = {
   rows = {"Rows of a table", 100000},
   updating = {"Share of transactions that update, in percent", 0},
}

local TABLES = 3
local READ = 100
local UPDATED = 20

local function columns(make)
   local list = {}
   for number = 1, 10 do list[number] = make(number) end
   return table.concat(list, ", ")
end

local function fill(connection, number)
   local kinds = columns(function(n) return "c" .. n .. " VARCHAR(20) NOT NULL" end)
   connection:query(string.format(
      "CREATE TABLE t%d (id INT PRIMARY KEY, n INT NOT NULL, %s) ENGINE = InnoDB", number, kinds))
   connection:bulk_insert_init(string.format("INSERT INTO t%d VALUES", number))
   for id = 1, sysbench.opt.rows do
      local texts = columns(function() return "'" .. sysbench.rand.string("@@@@@@@@@@@@@@@@") .. "'" end)
      connection:bulk_insert_next(string.format("(%d, 0, %s)", id, texts))
   end
   connection:bulk_insert_done()
end

function prepare()
   local connection = sysbench.sql.driver():connect()
   for number = 1, TABLES do fill(connection, number) end
end

function thread_init()
   connection = sysbench.sql.driver():connect()
end

function thread_done()
   connection:disconnect()
end

function event()
   local rows = sysbench.opt.rows
   local read = sysbench.rand.uniform(1, TABLES)
   local first = sysbench.rand.uniform(1, rows - READ + 1)
   local updates = sysbench.rand.uniform(1, 100) <= sysbench.opt.updating
   connection:query("BEGIN")
   connection:query(string.format(
      "SELECT SUM(n) FROM t%d WHERE id BETWEEN %d AND %d", read, first, first + READ - 1))
   if updates then
      for _ = 1, UPDATED do
         connection:query(string.format("UPDATE t%d SET n = n + 1 WHERE id = %d",
            read % TABLES + 1, sysbench.rand.uniform(1, rows)))
      end
   end
   connection:query("COMMIT")
end
