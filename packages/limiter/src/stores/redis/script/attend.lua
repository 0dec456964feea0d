-- The members of the fleet, in one slot of a Cluster. No command reads the whole list, so a heartbeat costs Redis the same
-- in a fleet of any size.
--
--   KEYS[1]  sorted set: each member with the time of its last heartbeat, by the clock of Redis
--   KEYS[2]  sorted set: the same, of the members that are back only
--   KEYS[3]  sorted set: each member with the score 0, so in the order of their ids, which gives the ranks
--   KEYS[4]  the era: created once, and another one when Redis has lost its memory
--
--   ARGV[1]  its id, which begins with the format in which it counts, and a colon
--
-- So many members that are gone are removed by one heartbeat, so that none takes long.
local MOST_REMOVED = 100
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, withinMs, memberMs, era, keptMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local isBack = ARGV[6] == '1'
local heard, back, ids = KEYS[1], KEYS[2], KEYS[3]
local function text(ms) return string.format('%.0f', ms) end
local function add(key, score)
  local reply = redis.pcall('ZADD', key, score, id)
  if type(reply) ~= 'table' then return end
  -- a key of another type is not ours
  if not reply.err:find('WRONGTYPE', 1, true) then error(reply) end
  redis.call('UNLINK', key)
  redis.call('ZADD', key, score, id)
end

add(heard, text(now))
add(ids, 0)
add(back, text(now))
if not isBack then redis.call('ZREM', back, id) end
-- a heartbeat from the future is of a clock that has stepped back since
for _, range in ipairs({ { '-inf', text(now - memberMs - 1) }, { text(now + memberMs), '+inf' } }) do
  local gone = redis.call('ZRANGEBYSCORE', heard, range[1], range[2], 'LIMIT', 0, MOST_REMOVED)
  if #gone > 0 then for k = 1, 3 do redis.call('ZREM', KEYS[k], unpack(gone)) end end
end
if redis.call('ZCARD', ids) ~= redis.call('ZCARD', heard) then
  -- one of the keys was lost
  redis.call('ZUNIONSTORE', ids, 1, heard, 'WEIGHTS', 0)
end
if not redis.call('SET', KEYS[4], era, 'NX') then
  local known = redis.pcall('GET', KEYS[4])
  if type(known) == 'string' then era = known else redis.call('SET', KEYS[4], era) end
end
for k = 1, 4 do redis.call('PEXPIRE', KEYS[k], keptMs) end
local since = text(now - withinMs)
local size, format = redis.call('ZCARD', ids), id:match('^[^:]*')
-- all members have one score, so they are in the order of their ids, and `;` follows the colon; a user of Redis may lack the command
local alike = redis.pcall('ZLEXCOUNT', ids, '[' .. format .. ':', '(' .. format .. ';')
return {
  era, size, redis.call('ZRANK', ids, id),
  redis.call('ZCOUNT', heard, since, '+inf'), redis.call('ZCOUNT', back, since, '+inf'),
  type(alike) == 'number' and size - alike or 0,
}
