-- Adds counts to one step of the history: a hash with a field for all calls, for each rule and for each process. Each field
-- has four numbers: allowed, refused, waited, refused in shadow. A hash that is full takes no new fields.
local key, ttl, fields = KEYS[1], ARGV[1], {}
for i = 2, #ARGV, 5 do fields[#fields + 1] = ARGV[i] end
local known = redis.call('HMGET', key, unpack(fields))
local room, values = MOST_FIELDS - redis.call('HLEN', key), {}
for i, field in ipairs(fields) do
  local allowed, refused, waited, shadow = (known[i] or ''):match('^(%d+) (%d+) (%d+) (%d+)$')
  if not known[i] then room = room - 1 end
  if known[i] or room >= 0 then
    local at = i * 5 - 2
    values[#values + 1] = field
    values[#values + 1] = string.format('%.0f %.0f %.0f %.0f', (allowed or 0) + ARGV[at], (refused or 0) + ARGV[at + 1],
      (waited or 0) + ARGV[at + 2], (shadow or 0) + ARGV[at + 3])
  end
end
if #values > 0 then
  redis.call('HSET', key, unpack(values))
  redis.call('PEXPIRE', key, ttl)
end
return redis.call('TIME')
