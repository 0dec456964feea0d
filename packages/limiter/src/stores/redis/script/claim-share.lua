-- The moves of `ShareBook` in Redis. Only a process that joins or changes its seat reads the whole list of seats.
--
--   KEYS[1]  sorted set: each member with the time of its last claim, by the clock of Redis
--   KEYS[2]  sorted set: each member with its seat
--   KEYS[3]  sorted set: each member that takes a share with the size it takes it by
--   KEYS[4]  hash: the sequence number of each member's last claim; `:heard`, when any process last claimed; `:resumed`
-- So many members that are gone are removed by one claim, so that none takes long.
local MOST_REMOVED = 100
local KEPT_MS = 86400000
local heard, seats, sizes, notes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, sequence, seat, used = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local leastSize, mayGrow, memberMs = tonumber(ARGV[5]), ARGV[6] == '1', tonumber(ARGV[7])
local now = tonumber(ARGV[8])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text(number) return string.format('%.0f', number) end
local types = { 'zset', 'zset', 'zset', 'hash' }
for k = 1, 4 do
  -- a key of another type is not ours
  local kind = redis.call('TYPE', KEYS[k]).ok
  if kind ~= 'none' and kind ~= types[k] then redis.call('DEL', KEYS[k]) end
end

local heardAt = tonumber(redis.call('HGET', notes, ':heard') or nil) or now
local resumedAt = tonumber(redis.call('HGET', notes, ':resumed') or nil) or 0
if now < heardAt or now - heardAt > memberMs / SILENT_PART then
  resumedAt = now
  redis.call('HSET', notes, ':resumed', text(now))
end
redis.call('HSET', notes, ':heard', text(now))
for _, other in ipairs(redis.call('ZRANGEBYSCORE', heard, '(' .. text(now), '+inf', 'LIMIT', 0, MOST_REMOVED)) do
  redis.call('ZADD', heard, text(now), other)
end
if now - resumedAt > memberMs then
  local gone = redis.call('ZRANGEBYSCORE', heard, '-inf', '(' .. text(now - memberMs), 'LIMIT', 0, MOST_REMOVED)
  if #gone > 0 then
    for k = 1, 3 do redis.call('ZREM', KEYS[k], unpack(gone)) end
    redis.call('HDEL', notes, unpack(gone))
  end
end

local function lowestFreeSeat()
  local taken, free = {}, 0
  local list = redis.call('ZRANGE', seats, 0, -1, 'WITHSCORES')
  for i = 2, #list, 2 do taken[tonumber(list[i])] = true end
  while taken[free] do free = free + 1 end
  return free
end
local function save(key, number)
  redis.call('ZADD', key, text(number), id)
end

local before = redis.call('ZSCORE', heard, id) and tonumber(redis.call('HGET', notes, id) or nil)
if before and sequence <= before then return {} end
local own = tonumber(redis.call('ZSCORE', seats, id) or nil)
local size = tonumber(redis.call('ZSCORE', sizes, id) or nil) or 0
if not own then
  local isFree = used > 0 and redis.call('ZCOUNT', seats, seat, seat) == 0
  own, size = isFree and seat or lowestFreeSeat(), 0
end
if used == 0 or size == 0 or own == seat then size = used else size = math.min(size, used) end
save(heard, now)
save(seats, own)
redis.call('HSET', notes, id, text(sequence))
local members = redis.call('ZCARD', heard)
local target = math.max(leastSize, members)
local isGranted = 0
if mayGrow then
  local least = redis.call('ZRANGE', sizes, 0, 1, 'WITHSCORES')
  local other = least[1] == id and least[4] or least[1] ~= id and least[2]
  if not other or tonumber(other) >= members then
    isGranted = 1
    size = size == 0 and target or math.min(size, target)
    if own >= target then own = math.min(own, lowestFreeSeat()) end
    save(seats, own)
  end
end
if size > 0 then save(sizes, size) else redis.call('ZREM', sizes, id) end
for k = 1, 4 do redis.call('PEXPIRE', KEYS[k], KEPT_MS) end
return { own, target, isGranted }
