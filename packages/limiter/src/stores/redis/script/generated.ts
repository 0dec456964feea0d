// Generated from the .lua files beside it by npm run lua: do not edit.

export const addHistory: string = `
local key, ttl, fields = KEYS[1], ARGV[1], {}
for i = 2, #ARGV, 5 do fields[#fields + 1] = ARGV[i] end
local known = redis.call('HMGET', key, unpack(fields))
local room, values = MOST_FIELDS - redis.call('HLEN', key), {}
for i, field in ipairs(fields) do
  local allowed, refused, waited, shadow = (known[i] or ''):match('^(%d+) (%d+) (%d+) (%d+)\$')
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
`

export const attend: string = `
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
  if not reply.err:find('WRONGTYPE', 1, true) then error(reply) end
  redis.call('UNLINK', key)
  redis.call('ZADD', key, score, id)
end

add(heard, text(now))
add(ids, 0)
add(back, text(now))
if not isBack then redis.call('ZREM', back, id) end
for _, range in ipairs({ { '-inf', text(now - memberMs - 1) }, { text(now + memberMs), '+inf' } }) do
  local gone = redis.call('ZRANGEBYSCORE', heard, range[1], range[2], 'LIMIT', 0, MOST_REMOVED)
  if #gone > 0 then for k = 1, 3 do redis.call('ZREM', KEYS[k], unpack(gone)) end end
end
if redis.call('ZCARD', ids) ~= redis.call('ZCARD', heard) then
  redis.call('ZUNIONSTORE', ids, 1, heard, 'WEIGHTS', 0)
end
if not redis.call('SET', KEYS[4], era, 'NX') then
  local known = redis.pcall('GET', KEYS[4])
  if type(known) == 'string' then era = known else redis.call('SET', KEYS[4], era) end
end
for k = 1, 4 do redis.call('PEXPIRE', KEYS[k], keptMs) end
local since = text(now - withinMs)
return {
  era, redis.call('ZCARD', ids), redis.call('ZRANK', ids, id),
  redis.call('ZCOUNT', heard, since, '+inf'), redis.call('ZCOUNT', back, since, '+inf'),
}
`

export const claimShare: string = `
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
`

export const credit: string = `
local amount, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'string' then redis.call('DEL', KEYS[1]) end
local left = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if left ~= left or left < 0 or left > most then left = 0 end
left = math.floor(left)
local function text(number) return string.format('%.0f', number) end
local moved
if ARGV[1] == 'add' then
  moved = left + amount > most and 0 or amount
  left = left + moved
elseif ARGV[1] == 'take' then
  moved = left < amount and 0 or amount
  left = left - moved
else
  moved = math.min(left, amount)
  left = left - moved
end
if moved > 0 then
  if left > 0 then
    redis.call('SET', KEYS[1], text(left))
  else
    redis.call('DEL', KEYS[1])
  end
end
return { text(moved), text(left) }
`

export const pace: string = `
local KEPT_MS = 86400000
local key, what, rate = KEYS[1], ARGV[1], ARGV[2]
local curve = cjson.decode(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local known = redis.call('HMGET', key, 'announced', 'rate', 'moment', 'owed', 'spent', 'largest', 'coolDownUs', 'at')
local fleetRate = known[2] or rate

if what == 'announce' then
  if known[1] ~= rate then fleetRate = rate end
  redis.call('HSET', key, 'announced', rate)
elseif what == 'set' then
  fleetRate = rate
elseif fleetRate ~= rate then
  return { fleetRate, string.format('%.0f', now) }
end

local isFree = curve.floorUs < curve.stableUs
local state = { now, 0, 0 }
if known[3] then
  local old, scale = { tonumber(known[3]), tonumber(known[4]), tonumber(known[5]) }, { 0, tonumber(known[6]), tonumber(known[7]) }
  if known[8] and tonumber(known[8]) > now then old[1] = old[1] - (tonumber(known[8]) - now) end
  if scale[2] == curve.largest and scale[3] == curve.coolDownUs then state = old
  elseif what ~= 'announce' or fleetRate == rate then state = moves.inherit(curve, old, scale, now)
  else
    curve = nil
  end
end

local reply = { fleetRate, string.format('%.0f', now) }
if what == 'take' then
  local permits, maxWaitUs, debt = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local knownUs = tonumber(ARGV[7])
  if not known[3] and knownUs >= 0 then state[2], state[3] = knownUs, isFree and curve.largest or 0 end
  if debt > 0 then moves.take(curve, state, now, debt, 0) end
  local waitUs = moves.delay(curve, state, now, permits)
  local isTaken = waitUs <= maxWaitUs
  if isTaken and permits > 0 then moves.take(curve, state, now, permits, waitUs) end
  local owes = moves.delay(curve, state, now, 1) > 0
  local idleUs = max(0, now - state[1]) - state[2]
  local stored = min(curve.largest, curve.largest - state[3] + max(0, idleUs) / curve.coolDownUs)
  reply[3], reply[4] = isTaken and 1 or 0, string.format('%.0f', waitUs)
  reply[5] = owes and 0 or (isFree and floor(stored + 1e-9) + 1 or 1)
elseif what == 'back' then
  moves.refund(curve, state, now, tonumber(ARGV[4]), tonumber(ARGV[5]))
end

redis.call('HSET', key, 'rate', fleetRate, 'at', string.format('%.0f', now))
if curve then
  redis.call('HSET', key, 'moment', string.format('%.0f', state[1]), 'owed', string.format('%.17g', state[2]),
    'spent', string.format('%.17g', state[3]), 'largest', string.format('%.17g', curve.largest),
    'coolDownUs', string.format('%.17g', curve.coolDownUs))
  redis.call('PEXPIRE', key, string.format('%.0f', max(KEPT_MS, ceil((moves.idleAt(curve, state) - now) / 1000) + 1000)))
else
  redis.call('PEXPIRE', key, KEPT_MS)
end
return reply
`
