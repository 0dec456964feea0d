local call, pack, fetch

-- What one run is about: its keys and arguments, the decoded request, the moment, and the reply so far, of n numbers.
local keys, args, request, now, reply, n

local SECOND = 1000000
-- Lua returns at most 8000 values at once.
local MANY = 1000
-- Redis accepts no expiry that is infinite.
local LONGEST = 1e16
-- Replies are whole numbers; longer than 285 years is never.
local NEVER = 2 ^ 53
-- No state has more numbers.
local MAX_NUMBERS = 100000
-- Kinds of requests, as a row of the request begins.
local TAKE, REFUND, RENEW, CATCH_UP, LEASE, RESERVE, SETTLE = 1, 2, 3, 5, 6, 7, 8
-- The numbers in the field '@' of a partition and of a shard.
local ABOUT, ABOUT_BYTES, SHARD_BYTES = '<dddddddddddd', 96, 16

local function bindNames()
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  call, pack, fetch = redis.call, struct.pack, struct.unpack
end

-- A library keeps its locals between runs, so what is decoded once need not be decoded again.
local MAX_DECODED, MAX_DECODED_BYTES = 500, 2000
local decoded, decodedCount = {}, 0

local function decode(text)
  local value = decoded[text]
  if value then return value end
  value = cjson.decode(text)
  if #text > MAX_DECODED_BYTES then return value end
  if decodedCount == MAX_DECODED then decoded, decodedCount = {}, 0 end
  decoded[text], decodedCount = value, decodedCount + 1
  return value
end

local formats = {}

-- The format of so many numbers.
local function formatOf(count)
  local format = formats[count]
  if not format then
    format = '<' .. string.rep('d', count)
    formats[count] = format
  end
  return format
end

-- A key of another type is not ours: delete it.
local function readFields(key, ...)
  local found = redis.pcall('HMGET', key, ...)
  if not found.err then return found end
  if found.err:find('WRONGTYPE', 1, true) then call('UNLINK', key) end
  return call('HMGET', key, ...)
end

-- Redis frees what expires in its main thread, and looks for it ten times a second. So hashes that stop to matter together expire
-- one after the other, in an order by their names: so far apart on average, or closer if that would take too long for many.
local LINGER_MS, APART_MS, MANY_APART_MS, LONG_MS, AT_LEAST_WITHIN_MS = 1000, 400, 100, 100000, 500

local function expire(key, lasts, shards)
  local place = tonumber(string.sub(redis.sha1hex(key), 1, 6), 16) / 2 ^ 24
  local hashes = (shards or 1) * (request.perRule or 1)
  local withinMs = max(AT_LEAST_WITHIN_MS, min(hashes * APART_MS, LONG_MS), hashes * MANY_APART_MS)
  local ttlMs = ceil((lasts - now) / 1000 + place * withinMs) + (request.lingerMs or LINGER_MS)
  call('PEXPIRE', key, string.format('%.0f', ttlMs))
end
