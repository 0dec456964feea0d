-- A pace that several processes share: one hash with the rate, the state of `Smooth` and its scale.
--
--   ARGV  what: announce, set, take or back; rate, and the curve that goes with it; then numbers of its own:
--     announce   a process starts with this rate: it is the fleet's, unless the same rate was announced
--                before and set to another one since
--     set        from now on this is the rate of the fleet
--     take       permits, maxWaitUs, debt, knownUs
--     back       permits, and the moment for which they were taken
--   reply  the rate of the fleet, now; and for take, if the request had that rate: 1 if the permits are taken, how long
--          until they are there, and how many calls for one permit would pass at once
-- `moves` are those of smooth.lua.
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
  -- a clock that stepped back takes the pace with it
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
  -- Redis has forgotten the pace: what was saved may have been used
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
