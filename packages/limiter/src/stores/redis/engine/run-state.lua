-- What one run is about: its keys, what is stored under them, its arguments, the moment, and the reply so far, of n numbers.
local call, packNumbers, unpackNumbers, pack, fetch
local keys, raws, args, request, now, reply, n
-- Reads the ledger of the next charge, in run.lua.
local nextLedger

local SECOND = 1000000
-- Redis accepts no expiry that is infinite.
local LONGEST = 1e16
-- Replies are whole numbers; longer than 285 years is never.
local NEVER = 2 ^ 53
-- Kinds of requests, as a row of the request begins.
local LOOK, TAKE, REFUND, RENEW, RESET, CATCH_UP, RESERVE, SETTLE = 0, 1, 2, 3, 4, 5, 7, 8

local function bindNames()
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  call, packNumbers, unpackNumbers = redis.call, cmsgpack.pack, cmsgpack.unpack
  pack, fetch = struct.pack, struct.unpack
end

-- A library keeps its locals between runs. What it remembers is bounded: when there are too many, those that were not used since the
-- last time are forgotten.
local function memoryOf(most)
  return { most = most, count = 0, young = {}, old = {} }
end

local function remember(memory, name, value)
  if memory.young[name] == nil then
    if memory.count == memory.most then memory.old, memory.young, memory.count = memory.young, {}, 0 end
    memory.count = memory.count + 1
  end
  memory.young[name] = value
end

local function recall(memory, name)
  local value = memory.young[name]
  if value ~= nil then return value end
  value = memory.old[name]
  if value ~= nil then remember(memory, name, value) end
  return value
end

-- Reads values that msgpack has packed; nil if the text is of another program.
local function readValues(text)
  return { unpackNumbers(text) }
end

local function valuesOf(text)
  local isPacked, values = pcall(readValues, text)
  return isPacked and values or nil
end

local function areNumbers(values, first, last)
  for i = first, last do
    if type(values[i]) ~= 'number' then return false end
  end
  return true
end
