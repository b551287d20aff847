-- Programs whose callers and callees are known: `script.lua WHAT SECONDS`, in Lua 5.1 to 5.4 and LuaJIT.
-- Prints the seconds of CPU time that it took, and of what it measured a line `NAME SECONDS` each.
local clock = os.clock
local unpack = table.unpack or unpack

function spin(units)
  local total = 0
  for i = 1, 40 * units do
    total = total + i % 7
  end
  return total
end

-- Functions with 50, 30 and 20 % of the time, in turn, from two callers each.
local function half()
  for _ = 1, 5 do spin(1) end
end

local function third()
  for _ = 1, 3 do spin(1) end
end

local function fifth()
  for _ = 1, 2 do spin(1) end
end

function one()
  half()
  third()
  fifth()
end

function other()
  half()
  third()
  fifth()
end

local function shares()
  one()
  other()
end

-- Functions in C call these: sort, gsub, pcall, and the events of metatables.
local function by_key(a, b)
  spin(1)
  return a < b
end

local function order()
  local list = {}
  for i = 1, 12 do list[i] = i * 7 % 13 end
  table.sort(list, by_key)
end

local function replace(word)
  spin(1)
  return #word
end

local function texts()
  string.gsub("some words to be replaced", "%a+", replace)
end

local Number = {}
Number.__index = function(_, key)
  spin(2)
  return key
end
Number.__add = function(a, b)
  spin(2)
  return a
end
Number.__lt = function()
  spin(2)
  return true
end
Number.__concat = function()
  spin(2)
  return "text"
end

local function events()
  local a, b = setmetatable({}, Number), setmetatable({}, Number)
  local _ = a.field, a + b, a < b, a .. b
end

local function fails()
  spin(2)
  error("thrown")
end

local function protected()
  pcall(fails)
  pcall(spin, 2)
end

local function each(_, i)
  if i < 4 then
    spin(1)
    return i + 1
  end
end

local function iterate()
  for _ in each, nil, 0 do spin(1) end
end

-- The caller gives way to what it calls last.
local function last(n)
  spin(n)
  return n
end

local function gives_way(n)
  return last(n)
end

local function tails()
  local n = gives_way(2)
  return n
end

local Object = {}
Object.__index = Object

function Object:method()
  spin(2)
end

local function objects()
  local object = setmetatable({}, Object)
  object:method()
end

local function callbacks()
  order()
  texts()
  events()
  protected()
  iterate()
  tails()
  objects()
end

-- Coroutines: a generator, one in another, and one that yields from within a protected call.
local function produce()
  for i = 1, 3 do
    spin(2)
    coroutine.yield(i)
  end
end

local function inner()
  for value in coroutine.wrap(produce) do
    spin(1)
    coroutine.yield(value)
  end
end

local function waits()
  spin(1)
  coroutine.yield(1)
  spin(1)
end

local function guarded()
  pcall(waits)
  spin(1)
end

local function outer()
  local co = coroutine.create(inner)
  while coroutine.resume(co) and coroutine.status(co) ~= "dead" do spin(1) end
  if _VERSION ~= "Lua 5.1" then
    local run = coroutine.wrap(guarded)
    run()
    run()
  end
end

local function coroutines()
  outer()
end

local function recurse(n)
  if n == 0 then return spin(400) end
  local value = recurse(n - 1)
  return value
end

local function deep()
  recurse(500)
  recurse(20)
end

-- Functions that are made and dropped.
local loads = loadstring or load

local function churn()
  for i = 1, 20 do
    local made = loads("local n = ... ; local function made_inside(n) spin(n) end made_inside(n) return " .. i)
    made(2)
  end
  collectgarbage("step")
end

local what = { shares = shares, callbacks = callbacks, coroutines = coroutines, deep = deep, churn = churn }

local function until_end(what, seconds)
  local start = clock()
  repeat
    for _ = 1, 20 do what() end
  until clock() - start >= seconds
  print("all", clock() - start)
end

local function main(name, seconds)
  until_end(what[name], seconds)
end

main(arg[1], tonumber(arg[2]))
