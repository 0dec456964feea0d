-- What is stored of one caller of a rule, as JSON with numbers as they are.
--
--   KEYS[1]  the ledger
-- Answers the values, for how many milliseconds the key is kept, and the moment, by the clock of Redis; nothing if there is no such
-- key; 0 if it is not a ledger.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then return nil end
local raw = kind == 'string' and redis.call('GET', KEYS[1])
local isPacked, values = pcall(function() return { cmsgpack.unpack(raw) } end)
if not isPacked then return 0 end
local list = values[1]
-- reservations are packed as doubles
if type(list) == 'table' and type(list[5]) == 'table' and type(list[5][4]) == 'string' then
  local text, numbers = list[5][4], {}
  for at = 1, #text - 7, 8 do numbers[#numbers + 1] = struct.unpack('<d', text, at) end
  list[5][4] = numbers
end
local function json(value)
  if type(value) == 'number' then
    if value == math.huge then return '1e999' end
    return string.format('%.17g', value)
  end
  if type(value) ~= 'table' then return cjson.encode(value) end
  local parts = {}
  if value[1] ~= nil or next(value) == nil then
    for i = 1, #value do parts[i] = json(value[i]) end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  for name, one in pairs(value) do parts[#parts + 1] = cjson.encode(tostring(name)) .. ':' .. json(one) end
  return '{' .. table.concat(parts, ',') .. '}'
end
local time = redis.call('TIME')
return { json(values), redis.call('PTTL', KEYS[1]), string.format('%.0f', time[1] * 1000000 + time[2]) }
